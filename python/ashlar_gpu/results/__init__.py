"""The types of the answers: explanation.Explanation, dry_run.DryRun, estimate.Estimate, sweep.Sweep, and their parts."""
