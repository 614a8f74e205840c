// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
)

// Events calls f for each event in the files of a recording, in order, and runs no engine. A file that begins with a
// State is preceded by events that give the same cluster: the time, objects, nodes and pods, and Synced. A pod that was
// decided and not yet bound is on its node then. Segments must follow each other.
func Events(names []string, plugins app.Plugins, f func(engine.Event)) error {
	r := eventReader{plugins: plugins, f: f}
	for _, name := range names {
		if err := r.file(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// eventReader reads the files of a recording.
type eventReader struct {
	plugins app.Plugins
	f       func(engine.Event)
	lines   *recording.Reader // nil before the first file
	events  int               // of the engine so far
}

func (r *eventReader) file(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if !isBundle(file) {
		return r.read(file)
	}
	b, err := bundle.Open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	events, err := b.Open(bundle.Recording)
	if err != nil {
		return fmt.Errorf("the bundle has no recording: %w", err)
	}
	defer events.Close()
	return r.read(events)
}

// isBundle reports whether a file begins as a bundle does.
func isBundle(file io.ReaderAt) bool {
	magic := make([]byte, len(zipMagic))
	n, _ := file.ReadAt(magic, 0)
	return n == len(magic) && string(magic) == zipMagic
}

// read reads one file.
func (r *eventReader) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	header, err := readLine(lines)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the recording: %w", err)
	}
	h, err := readHeader(header)
	if err != nil {
		return err
	}
	first := 2
	switch {
	case h.Kumiki == formatFromStart && r.lines != nil:
		return errors.New("a scheduler was started anew; simulate its files by themselves")
	case h.Kumiki == formatFromStart:
		r.lines = recording.NewReader()
	case r.lines != nil && h.Before != r.events:
		return fmt.Errorf("it begins after event %d, and the file before it ends with event %d", h.Before, r.events)
	case r.lines != nil:
		if first, err = skipState(lines); err != nil {
			return err
		}
	default:
		r.lines, r.events = recording.NewReader(), h.Before
		cfg, _, _, err := h.configuration(r.plugins)
		if err != nil {
			return err
		}
		var st *engine.State
		if st, first, err = readState(lines, r.lines, &cfg); err != nil {
			return err
		}
		if err := checkPods(st); err != nil {
			return fmt.Errorf("line %d: %w", first-1, err)
		}
		stateEvents(st, r.f)
	}
	for at := first; ; at++ {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil // a last line without an end was truncated by a crash
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		ev, isEvent, err := r.lines.Event(bytes.TrimSuffix(raw, []byte("\n")))
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		if isEvent {
			r.events++
			r.f(ev)
		}
	}
}

// checkPods returns an error if a State names a pod that it does not have. An engine that is resumed checks more.
func checkPods(st *engine.State) error {
	missing := slices.Contains(st.Pending, nil) || slices.Contains(st.Edited, nil)
	for _, row := range st.Cluster.Rows {
		for _, held := range row.Pods {
			missing = missing || held.Pod == nil
		}
	}
	if missing {
		return errors.New("the state has a pod without a record")
	}
	return nil
}

// stateEvents calls f for events that give the cluster of a State.
func stateEvents(st *engine.State, f func(engine.Event)) {
	st.Sort()
	f(engine.Tick{Now: st.Now})
	for _, o := range st.Cluster.Objects {
		if o.API != nil {
			f(engine.ObjectSet{Object: o.API})
		}
	}
	for _, row := range st.Cluster.Rows {
		if row.Node != nil {
			f(engine.NodeSet{Node: row.Node})
		}
	}
	placed := map[string]bool{} // UID -> the pod has a node
	for _, row := range st.Cluster.Rows {
		for _, held := range row.Pods {
			p := *held.Pod
			p.NodeName = row.Name
			placed[string(p.UID)] = true
			f(engine.PodSet{Pod: &p})
		}
	}
	for _, p := range st.Pending {
		if !placed[string(p.UID)] {
			f(engine.PodSet{Pod: p})
		}
	}
	f(engine.Synced{})
}

// Config returns the configuration that a file of a recording was made with, and plugins with the features that were
// on.
func Config(name string, plugins app.Plugins) (c config.Resolved, with app.Plugins, err error) {
	file, err := os.Open(name)
	if err != nil {
		return c, plugins, err
	}
	defer file.Close()
	in := io.Reader(file)
	if isBundle(file) {
		b, err := bundle.Open(name)
		if err != nil {
			return c, plugins, err
		}
		defer b.Close()
		events, err := b.Open(bundle.Recording)
		if err != nil {
			return c, plugins, fmt.Errorf("the bundle has no recording: %w", err)
		}
		defer events.Close()
		in = events
	}
	first, err := readLine(bufio.NewReaderSize(in, 1<<20))
	if err != nil && !errors.Is(err, io.EOF) {
		return c, plugins, fmt.Errorf("reading the recording: %w", err)
	}
	h, err := readHeader(first)
	if err != nil {
		return c, plugins, err
	}
	text, err := json.Marshal(h.Config)
	if err == nil {
		plugins = plugins.With(h.Features)
		c, err = plugins.ParseConfig(text)
	}
	if err != nil {
		return c, plugins, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	return c, plugins, nil
}
