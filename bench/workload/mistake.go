// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
)

// Mistake is one thing that is wrong in a file.
type Mistake struct {
	Path string
	Line int // counted from 1; 0 when the whole file is meant
	What string
}

// Error is path:line: what.
func (m Mistake) Error() string { return m.place() + ": " + m.What }

func (m Mistake) place() string {
	if m.Line == 0 {
		return m.Path
	}
	return fmt.Sprintf("%s:%d", m.Path, m.Line)
}

// Mistakes are all that were found, in the order of reading: who repairs a file wants them at once.
type Mistakes []Mistake

// Error has a line for each.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}

// err is nil when there is none.
func (m Mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}
