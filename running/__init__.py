"""Running: bring a lab up, drive its hosts, break things on time, and journal all of it."""
