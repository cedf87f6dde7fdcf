"""Messages between the ranks of a job, over queue pairs of uverbs. No module here knows PyTorch."""
