// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
)

// Events calls f for each event of a recording that begins with a new engine, in order, and runs no engine.
func Events(in io.Reader, f func(engine.Event)) error {
	lines, reader := bufio.NewReaderSize(in, 1<<20), recording.NewReader()
	first, err := lines.ReadBytes('\n')
	var h header
	if err != nil || json.Unmarshal(first, &h) != nil || h.Kumiki != formatFromStart {
		return fmt.Errorf("not a recording from a start: the first line does not say %q", formatFromStart)
	}
	for at := 2; ; at++ {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a last line without an end was truncated by a crash
		}
		ev, isEvent, err := reader.Event(bytes.TrimSuffix(raw, []byte("\n")))
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		if isEvent {
			f(ev)
		}
	}
}
