// SPDX-License-Identifier: Apache-2.0

package reliability

// faults are the cases of processes and connections that fail.
func faults() []Case { return nil }
