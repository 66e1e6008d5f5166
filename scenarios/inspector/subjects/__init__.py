"""What is inspected: subjects, their settings, their runs in progress, and changes of users."""
