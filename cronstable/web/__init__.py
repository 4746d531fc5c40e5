"""What people and programs see over HTTP."""
