// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
)

// Reason is why a recording ended before it was closed.
type Reason string

// The reasons.
const (
	Limit     Reason = "limit"     // the file has reached its size limit
	DiskFull  Reason = "disk_full" // the file system has no space, or the quota is used up
	WriteFail Reason = "write"     // a write or the creation of a segment failed otherwise
	TooSlow   Reason = "too_slow"  // the disk takes less than the engine produces
	reasonNot Reason = ""          // it has not ended
)

// Reasons are all of them.
var Reasons = []Reason{Limit, DiskFull, WriteFail, TooSlow}

// maxWaiting bounds the lines that wait for the disk.
const maxWaiting = 64 << 20

// chunk is one order to the writer: lines for the present file, or the State with which the next segment begins.
type chunk struct {
	lines  []byte
	next   *engine.State // nil for lines
	before int           // with next: the events before the segment
}

// writer writes the files of a recording on a goroutine of its own, so that neither the disk nor the encoding of a
// State stops the scheduling loop.
type writer struct {
	r *Recorder

	mu       sync.Mutex
	changed  sync.Cond
	queue    []chunk
	waiting  int    // bytes in queue
	spare    []byte // a buffer that can be used again
	rotating bool   // a State is in the queue or being written
	closed   bool
	reason   Reason // why nothing is written any more
	why      string

	done chan struct{} // closed when the goroutine has ended
	file io.WriteCloser
	out  *bufio.Writer
	err  error // of closing the last file
}

func newWriter(r *Recorder, file io.WriteCloser) *writer {
	w := &writer{r: r, file: file, out: bufio.NewWriterSize(file, 1<<20), done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// put hands lines to the writer, and returns an empty buffer for the next ones.
func (w *writer) put(lines []byte) []byte {
	w.mu.Lock()
	if w.reason != reasonNot {
		w.mu.Unlock()
		return lines[:0]
	}
	full := w.waiting > 0 && w.waiting+len(lines) > w.r.opts.maxWaiting
	if !full {
		w.waiting += len(lines)
		w.queue = append(w.queue, chunk{lines: lines})
		lines, w.spare = w.spare, nil
		w.changed.Signal()
	}
	w.mu.Unlock()
	if full {
		w.end(TooSlow, fmt.Sprintf("%d bytes wait for the disk", w.r.opts.maxWaiting))
	}
	return lines[:0]
}

// mayRotate reports whether no segment is being begun.
func (w *writer) mayRotate() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.rotating && w.reason == reasonNot
}

// rotate orders the next segment.
func (w *writer) rotate(st *engine.State, before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rotating = true
	w.queue = append(w.queue, chunk{next: st, before: before})
	w.changed.Signal()
}

// ended returns why nothing is written any more.
func (w *writer) ended() (Reason, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason, w.why
}

// end notes and reports that nothing is written any more. Scheduling continues.
func (w *writer) end(reason Reason, why string) {
	w.mu.Lock()
	first := w.reason == reasonNot
	if first {
		w.reason, w.why = reason, why
		if reason != Limit { // what was accepted before the limit is written
			w.queue = nil
		}
	}
	w.mu.Unlock()
	if !first {
		return
	}
	klog.Background().Info("Recording ended, scheduling goes on", "file", w.r.path, "cause", string(reason),
		"reason", why)
	if w.r.opts.Ended != nil {
		w.r.opts.Ended(reason)
	}
}

func (w *writer) fail(err error) {
	reason := WriteFail
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		reason = DiskFull
	}
	w.end(reason, "recording failed: "+err.Error())
}

func (w *writer) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed {
			w.changed.Wait()
		}
		if len(w.queue) == 0 {
			w.mu.Unlock()
			break
		}
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.waiting -= len(next.lines)
		w.mu.Unlock()
		if err := w.write(next); err != nil {
			w.fail(err)
		}
		w.mu.Lock()
		w.rotating = w.rotating && next.next == nil
		w.spare = next.lines[:0]
		w.mu.Unlock()
	}
	w.err = errors.Join(w.out.Flush(), w.file.Close())
}

func (w *writer) write(c chunk) error {
	if c.next != nil {
		return w.begin(c)
	}
	if _, err := w.out.Write(c.lines); err != nil {
		return err
	}
	return w.out.Flush()
}

// begin closes the present segment, opens the next one, and removes the oldest if there are too many.
func (w *writer) begin(c chunk) error {
	if err := errors.Join(w.out.Flush(), w.file.Close()); err != nil {
		w.file = nothing{}
		return err
	}
	w.file = nothing{}
	w.r.segment++
	first, err := w.r.header(formatFromState, c.before)
	if err != nil {
		return err
	}
	file, err := w.r.opts.open(segmentName(w.r.path, w.r.segment))
	if err != nil {
		return err
	}
	w.file = file
	w.out.Reset(file)
	if _, err := w.out.Write(first); err != nil {
		return err
	}
	recording.WriteState(c.next, func(lines []byte) { w.out.Write(lines) }) // an error is that of Flush
	return errors.Join(w.out.Flush(), prune(w.r.path, w.r.opts.Segments))
}

// nothing is written to after the last file was closed.
type nothing struct{}

func (nothing) Write([]byte) (int, error) { return 0, os.ErrClosed }
func (nothing) Close() error              { return nil }

// openNew creates a file; an existing one is not overwritten.
func openNew(path string) (io.WriteCloser, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// prune removes the oldest segments, so that keep are left.
func prune(path string, keep int) error {
	all, err := segments(path)
	if err != nil {
		return err
	}
	for ; len(all) > keep; all = all[1:] {
		if err := os.Remove(all[0].name); err != nil {
			return err
		}
	}
	return nil
}

// found is a segment that exists.
type found struct {
	name   string
	number int
}

func segmentName(path string, number int) string { return fmt.Sprintf("%s.%06d", path, number) }

// segments returns the segments of a recording, in order.
func segments(path string) ([]found, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var all []found
	for _, e := range entries { // ReadDir sorts by name, and numbers have one width
		var number int
		name := filepath.Join(filepath.Dir(path), e.Name())
		n, _ := fmt.Sscanf(filepath.Ext(name), ".%06d", &number)
		if n == 1 && filepath.Clean(segmentName(path, number)) == name {
			all = append(all, found{name, number})
		}
	}
	return all, nil
}

// close lets the writer end after what is in the queue, and waits for it.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.changed.Signal()
	w.mu.Unlock()
	<-w.done
}
