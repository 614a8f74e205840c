// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Reader reads the log of an arbiter. What applies the entries has a store that the reader does not know.
type Reader struct {
	Facts // as of Last
	c     *coder
	// broken is set after an error: the store is between two positions.
	broken error
}

// Follower is a store that follows the log of an arbiter.
type Follower struct {
	*Reader
	store *cluster.Store
}

// NewFollower returns a follower that has no entries. It can follow from the first one on, or load a snapshot.
func NewFollower() *Follower { return &Follower{&Reader{c: newCoder(true)}, cluster.NewStore()} }

// Store returns the store, which the caller must not change.
func (f *Follower) Store() *cluster.Store { return f.store }

// Apply applies a frame. Entries that the follower has already are passed over, so that a repeated frame is harmless.
// After an error the follower must load a snapshot.
func (f *Follower) Apply(frame []byte) error {
	return f.Read(frame, func(e Entry) error {
		if e.Change.Kind == 0 {
			return nil
		}
		return f.store.Apply(e.Change)
	})
}

// Read reads a frame and has each entry applied that the reader does not have yet. After an error the reader must not
// be used any more, and what it was applied to must load a snapshot.
func (f *Reader) Read(frame []byte, apply func(Entry) error) error {
	if f.broken != nil {
		return f.broken
	}
	if err := f.read(frame, apply); err != nil {
		f.broken = fmt.Errorf("applying entries after %d: %w", f.Last, err)
		return f.broken
	}
	return nil
}

func (f *Reader) read(frame []byte, apply func(Entry) error) error {
	body, err := open(frame, MaxFrame+32)
	if err != nil {
		return err
	}
	c := f.c
	c.buf, c.err = body, nil
	epoch, first, count := c.header()
	switch {
	case c.err != nil:
		return fmt.Errorf("%w: %w", ErrFrame, c.err)
	case epoch < f.Epoch():
		return fmt.Errorf("entries of epoch %d after those of %d", epoch, f.Epoch())
	case uint64(first)+count-1 <= uint64(f.Last):
		return nil
	case first != f.Last+1:
		return fmt.Errorf("entries from %d on, %d is the next", first, f.Last+1)
	}
	for range count {
		if err := f.one(epoch, apply); err != nil {
			return err
		}
	}
	if len(c.buf) > 0 {
		return fmt.Errorf("%w: %d bytes after the last entry", ErrFrame, len(c.buf))
	}
	return nil
}

// one reads and applies an entry of an epoch.
func (f *Reader) one(epoch shard.Epoch, apply func(Entry) error) error {
	var e Entry
	if f.c.entry(&e); f.c.err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, f.c.err)
	}
	if (e.Kind == Promoted) != (epoch > f.Epoch()) {
		return fmt.Errorf("entry of kind %d and epoch %d after epoch %d", e.Kind, epoch, f.Epoch())
	}
	if e.Kind == Promoted {
		f.Origins = append(f.Origins, shard.Origin{Epoch: epoch, First: f.Last + 1})
	}
	if err := apply(e); err != nil {
		return err
	}
	return f.note(e)
}

// Become returns the writer of a follower that has become the arbiter of an epoch. It continues the follower's log;
// the follower must not be used any more, and its store becomes the arbiter's.
func (f *Reader) Become(epoch shard.Epoch) *Writer {
	if f.broken != nil {
		panic(fmt.Sprintf("replica: a follower becomes the arbiter after %v", f.broken))
	}
	f.c.buf, f.c.reads = nil, false
	w := &Writer{c: f.c, Facts: f.Facts}
	w.Promote(epoch)
	return w
}

// Window keeps the newest frames of a log.
type Window struct {
	most    int // entries
	frames  []Frame
	entries int
}

// NewWindow returns a window of so many entries at least.
func NewWindow(entries int) *Window { return &Window{most: entries} }

// Add adds frames and drops the oldest ones that the window does not need.
func (w *Window) Add(frames ...Frame) {
	for _, f := range frames {
		w.frames = append(w.frames, f)
		w.entries += f.len()
	}
	drop := 0
	for ; drop < len(w.frames) && w.entries-w.frames[drop].len() >= w.most; drop++ {
		w.entries -= w.frames[drop].len()
		w.frames[drop] = Frame{}
	}
	w.frames = w.frames[drop:]
}

func (f *Frame) len() int { return int(f.Last - f.First + 1) }

// After returns the frames behind a position. ok is false if the window does not have them all, or if the position is
// inside of a frame: then the follower needs a snapshot.
func (w *Window) After(at shard.Position) (frames []Frame, ok bool) {
	for i, f := range w.frames {
		if f.First == at+1 {
			return w.frames[i:], true
		}
	}
	n := len(w.frames)
	return nil, n > 0 && w.frames[n-1].Last == at
}
