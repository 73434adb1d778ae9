#!/bin/sh
# The job of the guides: two programs, one after the other.
./solver
./analysis.py 500000
