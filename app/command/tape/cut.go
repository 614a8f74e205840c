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
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
)

// WriteCut writes what a flight recorder keeps, as a recording without effects. hosted describes the plugins of
// kube-scheduler's framework that the engine has; nil for none. It sorts the lists of the State.
func WriteCut(w io.Writer, c config.Resolved, timeout time.Duration, hosted *answers.Host, cut *incident.Cut) error {
	wire, err := c.WithoutSecrets().Wire()
	if err != nil {
		return err
	}
	h := header{Kumiki: formatFromState, Config: wire, UnschedulableTimeout: timeout, Features: c.Features,
		Before: cut.Before, Digests: true}
	h.describe(hosted)
	first, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.Write(append(first, '\n')) // errors of the Writer are those of Flush
	recording.WriteState(cut.State, func(lines []byte) { out.Write(lines) })
	var line []byte
	cut.Each(func(e incident.Entry, heard engine.Heard) {
		line = recording.AppendEvent(line[:0], e.Event)
		if len(heard.Answers)+len(heard.Hosted) > 0 {
			line = recording.AppendEffects(line, []engine.Effect{heard})
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
	cut.Each(func(e incident.Entry, _ engine.Heard) {
		out.Write(binary.LittleEndian.AppendUint64(nil, e.Digest)) // errors of the Writer are those of Flush
	})
	if err := out.Flush(); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}
