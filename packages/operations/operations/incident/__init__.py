"""An incident: a lab under load with a hidden fault, the tools to look for the fault, and the answer."""
