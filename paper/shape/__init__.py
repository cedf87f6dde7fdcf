"""The paper's argument about shape, run: planes of two tiers against one fabric of three with as many hosts."""
