"""What tests of several rooms share: a tenant and its kubectl, waiting on conditions."""
