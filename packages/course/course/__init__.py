"""The course: labs that a student solves, and that check themselves in virtual time and without root."""
