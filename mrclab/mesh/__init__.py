"""Messages between the ranks of a job, over queue pairs of the door. No module here knows PyTorch."""
