// SPDX-License-Identifier: Apache-2.0

// Package sessions owns the four scenarios of gangs that are scheduled in sessions, one pod on each node; its README
// says what to expect of them.
package sessions

import "embed"

// Files are the configuration, the priorities, and for each scenario a directory with its two parts.
//
//go:embed *.yaml */*.yaml
var Files embed.FS
