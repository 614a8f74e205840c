// SPDX-License-Identifier: Apache-2.0

// Package perfconfig owns the test that bench/workload reads the format of upstream's scheduler_perf: every
// performance-config.yaml of the pinned release loads, every workload in it plans, each field that upstream's
// operations have is known, and the values in the plans are those that a second, naive reading of the files finds.
//
// The files are read from the module cache; none is copied.
package perfconfig
