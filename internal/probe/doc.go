// SPDX-License-Identifier: Apache-2.0

// Package probe owns the check whether another test would fail: a suite uses it to show that it detects faults that
// are put into the code on purpose.
package probe
