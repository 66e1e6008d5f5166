"""Accounting logs of PBS, PBS Professional and Torque."""
