// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
)

// WriteCut writes what a flight recorder keeps, as a recording without effects. It sorts the lists of the State.
func WriteCut(w io.Writer, c config.Resolved, timeout time.Duration, cut *incident.Cut) error {
	wire, err := c.WithoutSecrets().Wire()
	if err != nil {
		return err
	}
	first, err := json.Marshal(header{Kumiki: formatFromState, Config: wire, UnschedulableTimeout: timeout,
		Features: c.Features, Before: cut.Before, Digests: true})
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.Write(append(first, '\n')) // errors of the Writer are those of Flush
	recording.WriteState(cut.State, func(lines []byte) { out.Write(lines) })
	var line []byte
	cut.Each(func(e incident.Entry, answers []engine.Answer) {
		line = recording.AppendEvent(line[:0], e.Event)
		if len(answers) > 0 {
			line = recording.AppendEffects(line, []engine.Effect{engine.Heard{Answers: answers}})
		}
		out.Write(line)
	})
	if err := out.Flush(); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// WriteDigests writes the digests of what a flight recorder keeps.
func WriteDigests(w io.Writer, cut *incident.Cut) error {
	out := bufio.NewWriterSize(w, 1<<16)
	cut.Each(func(e incident.Entry, _ []engine.Answer) {
		out.Write(binary.LittleEndian.AppendUint64(nil, e.Digest)) // errors of the Writer are those of Flush
	})
	if err := out.Flush(); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}
