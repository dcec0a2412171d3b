"""Many runs at once, on several workers that are killed at random; and a long queue that builds up while no worker is there."""
