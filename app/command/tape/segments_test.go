// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// history is a scheduler with recordings of what it does.
type history struct {
	t      *testing.T
	engine *engine.Engine
	intake *convert.Intake
	to     []*Recorder
	now    record.Time
}

func newHistory(t *testing.T) *history {
	t.Helper()
	cfg, err := app.Plugins{}.EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(5 * time.Minute)
	return &history{t: t, engine: engine.New(cfg), intake: convert.NewIntake()}
}

// record starts a recording.
func (h *history) record(path string, o Options) *Recorder {
	h.t.Helper()
	o.State = h.engine.State
	r, err := Start(path, config.Default(), 5*time.Minute, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.to = append(h.to, r)
	return r
}

// step gives an event to the engine, once no segment is being begun.
func (h *history) step(ev engine.Event) []engine.Effect {
	effects := h.engine.Step(ev)
	for _, r := range h.to {
		r.Observe(ev, effects)
		for r.rotates() && !r.out.mayRotate() && r.Whole() == nil {
			time.Sleep(100 * time.Microsecond)
		}
	}
	return effects
}

// run adds two nodes, and pods that come, are bound or wait, and go.
func (h *history) run(from, to int) {
	h.t.Helper()
	if from == 0 {
		for _, name := range []string{"n1", "n2"} {
			h.step(engine.NodeSet{Node: h.intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
				Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("8"),
					"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}}})})
		}
		h.step(engine.Synced{})
	}
	for i := from; i < to; i++ {
		h.now += record.Second
		h.step(engine.Tick{Now: h.now})
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i),
			UID: types.UID(fmt.Sprintf("u%d", i))}, Spec: v1.PodSpec{SchedulerName: "default-scheduler",
			Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + i%5))}}}}}}
		h.step(engine.PodSet{Pod: h.intake.Pod(pod)})
		for _, f := range h.step(engine.Cycle{}) {
			if b, is := f.(engine.Bind); is {
				h.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
				pod.Spec.NodeName = b.Node
				h.step(engine.PodSet{Pod: h.intake.Pod(pod)})
			}
		}
		if gone := i - 4; gone >= 0 {
			h.step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: fmt.Sprintf("p%d", gone),
				UID: fmt.Sprintf("u%d", gone)}})
		}
	}
}

// end closes the recordings.
func (h *history) end() {
	h.t.Helper()
	for _, r := range h.to {
		if err := r.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	h.to = nil
}

// effectsIn returns the lines of events and effects of files, in order.
func effectsIn(t *testing.T, names []string) (lines []byte) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte(`{"event":`)) || bytes.HasPrefix(line, []byte(`{"effect":`)) {
				lines = append(lines, line...)
			}
		}
	}
	return lines
}

// playFiles plays files, and returns how many events they have, how many of them differ, and the notes.
func playFiles(t *testing.T, names ...string) (events, different int, notes []string) {
	t.Helper()
	err := PlayFiles(names, app.Plugins{}, func(text string) { notes = append(notes, text) },
		func(_ *engine.Engine, s Step) error {
			events++
			if s.Differs() {
				different++
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return events, different, notes
}

func filesOf(t *testing.T, name string) []string {
	t.Helper()
	names, err := Files(name)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSegmentsHaveEveryEvent: what the segments of a recording have is what one file has, byte for byte. Each segment
// can be replayed by itself, and all together, whether they are named one by one or as a directory.
func TestSegmentsHaveEveryEvent(t *testing.T) {
	dir, h := t.TempDir(), newHistory(t)
	whole := filepath.Join(dir, "whole")
	h.record(whole, Options{MaxBytes: DefaultMaxBytes})
	if err := os.Mkdir(filepath.Join(dir, "parts"), 0o700); err != nil {
		t.Fatal(err)
	}
	parts := filepath.Join(dir, "parts", "tape")
	h.record(parts, Options{MaxBytes: 20_000, Segments: 1000})
	h.run(0, 120)
	h.end()

	names := filesOf(t, parts)
	if len(names) < 5 {
		t.Fatalf("%d segments, want several", len(names))
	}
	if got, want := effectsIn(t, names), effectsIn(t, []string{whole}); !bytes.Equal(got, want) {
		t.Errorf("the segments have %d bytes of events and effects, the whole recording has %d", len(got), len(want))
	}
	all, different, _ := playFiles(t, whole)
	if all < 500 || different > 0 {
		t.Fatalf("%d events of the whole recording, %d differ", all, different)
	}
	sum := 0
	for _, name := range names {
		events, different, notes := playFiles(t, name)
		if sum += events; events == 0 || different > 0 || len(notes) > 0 {
			t.Errorf("%s by itself: %d events, %d differ, notes %v", name, events, different, notes)
		}
	}
	if sum != all {
		t.Errorf("%d events in segments, %d in the whole recording", sum, all)
	}
	if !slices.Equal(filesOf(t, filepath.Dir(parts)), names) {
		t.Errorf("the directory is read as %v", filesOf(t, filepath.Dir(parts)))
	}
	if events, different, notes := playFiles(t, names...); events != all || different > 0 || len(notes) > 0 {
		t.Errorf("in a row: %d events of %d, %d differ, notes %v", events, all, different, notes)
	}
	if events, different, notes := playFiles(t, slices.Delete(slices.Clone(names), 2, 3)...); events >= all ||
		different > 0 || len(notes) != 1 || !strings.Contains(notes[0], "it is played from its state") {
		t.Errorf("one is missing: %d events of %d, %d differ, notes %v", events, all, different, notes)
	}
}

// TestNewestSegmentsAreKept: older ones are removed, and a scheduler that starts again goes on with the numbers.
func TestNewestSegmentsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	h := newHistory(t)
	h.record(path, Options{MaxBytes: 10_000, Segments: 3})
	h.run(0, 60)
	h.end()
	names := filesOf(t, path)
	if len(names) != 3 || names[0] == path+".000001" {
		t.Fatalf("segments %v, want the newest 3", names)
	}
	again := newHistory(t)
	again.record(path, Options{MaxBytes: DefaultMaxBytes, Segments: 3})
	again.run(0, 10)
	again.end()
	after := filesOf(t, path)
	if after[0] == names[0] || !slices.Contains(after, names[2]) {
		t.Errorf("segments %v after a second start, %v before", after, names)
	}
	if _, different, notes := playFiles(t, after...); different > 0 || len(notes) != 1 ||
		!strings.Contains(notes[0], "started anew") {
		t.Errorf("%d events differ, notes %v", different, notes)
	}
}

// disk is a file system on which writes fail, or wait.
type disk struct {
	left  int           // bytes until a write fails
	err   error         // of writes then, or of creating a file if none
	ready chan struct{} // writes wait until it is closed; nil for no wait
}

func (d *disk) open(string) (io.WriteCloser, error) {
	if d.left == 0 {
		return nil, d.err
	}
	return d, nil
}

func (d *disk) Write(b []byte) (int, error) {
	if d.ready != nil {
		<-d.ready
	}
	if len(b) > d.left {
		return 0, d.err
	}
	d.left -= len(b)
	return len(b), nil
}

func (d *disk) Close() error { return nil }

// TestABadDiskEndsTheRecordingOnly: if the disk is full, broken or too slow, the recording ends with the reason, which
// is reported once. Observing goes on without waiting.
func TestABadDiskEndsTheRecordingOnly(t *testing.T) {
	for want, d := range map[Reason]*disk{ // order: each by itself
		DiskFull:  {left: 30_000, err: &os.PathError{Op: "write", Path: "tape", Err: syscall.ENOSPC}},
		WriteFail: {left: 30_000, err: errors.New("input/output error")},
		TooSlow:   {left: 1 << 30, ready: make(chan struct{})},
	} {
		h := newHistory(t)
		ended := make(chan Reason, 10)
		waiting := 0
		if want == TooSlow {
			waiting = 200_000
		}
		r := h.record(filepath.Join(t.TempDir(), "tape"), Options{MaxBytes: DefaultMaxBytes,
			Ended: func(why Reason) { ended <- why }, open: d.open, maxWaiting: waiting})
		h.run(0, 300) // far more bytes than the disk takes
		if want == TooSlow && r.Whole() == nil {
			close(d.ready)
			t.Fatal("lines wait for the disk without limit")
		}
		if got := <-ended; got != want || r.Whole() == nil {
			t.Errorf("ended with %q (%v), want %q", got, r.Whole(), want)
		}
		if d.ready != nil {
			close(d.ready)
		}
		r.Close() // its error is that of the disk
		if len(ended) > 0 {
			t.Errorf("%s: reported again, as %q", want, <-ended)
		}
	}
}

// TestNoSpaceForTheNextSegment: a segment that cannot be created ends the recording, and those before it can be read.
func TestNoSpaceForTheNextSegment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	h := newHistory(t)
	created := 0
	ended := make(chan Reason, 1)
	h.record(path, Options{MaxBytes: 10_000, Segments: 4, Ended: func(why Reason) { ended <- why },
		open: func(name string) (io.WriteCloser, error) {
			if created++; created > 2 {
				return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
			}
			return openNew(name)
		}})
	h.run(0, 60)
	if got := <-ended; got != DiskFull {
		t.Errorf("ended with %q", got)
	}
	h.end()
	if events, different, notes := playFiles(t, filesOf(t, path)...); events == 0 || different > 0 || len(notes) > 0 {
		t.Errorf("%d events, %d differ, notes %v", events, different, notes)
	}
}

// TestNoSegmentsThere: a name that is no recording gives a reason.
func TestNoSegmentsThere(t *testing.T) {
	dir := t.TempDir()
	if _, err := Files(dir); err == nil || !strings.Contains(err.Error(), "has no segments") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Files(filepath.Join(dir, "tape")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, name := range []string{"a.000001", "b.000001"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Files(dir); err == nil || !strings.Contains(err.Error(), "segments of 2 recordings") {
		t.Errorf("two recordings: %v", err)
	}
}
