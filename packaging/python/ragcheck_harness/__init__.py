"""What the wheel of ragcheck has besides the command: a plugin of pytest."""
