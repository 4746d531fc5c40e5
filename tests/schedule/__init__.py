"""
Tests of cronstable.schedule.
"""
