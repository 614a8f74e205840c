// SPDX-License-Identifier: Apache-2.0

// Package probe owns a way for tests to ask whether another test would fail: how a suite shows that it sees the faults
// that are put into the code on purpose.
package probe
