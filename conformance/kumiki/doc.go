// SPDX-License-Identifier: Apache-2.0

// Package kumiki owns the side of the comparison that is kumiki: its config, store, plugins, search
// and queue, behind the interfaces of packages diff and queue. It maps answers
// and decides nothing itself.
package kumiki
