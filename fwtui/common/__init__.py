"""What everything else uses: errors, text, units, signals, streams, files."""
