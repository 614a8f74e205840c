// SPDX-License-Identifier: Apache-2.0

// Package kumiki owns kumiki's side of the comparison: its config, store, plugins, search and queue, behind the
// interfaces of packages diff and queue. It converts answers and makes no decisions.
package kumiki
