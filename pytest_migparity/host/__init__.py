"""What runs on the hosts: stdlib and wire, Python 3.9 and newer."""
