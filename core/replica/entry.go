// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Kind is what an entry is about: a change of the store (cluster.ChangeKind), or one of the following.
type Kind uint8

const (
	// Promoted begins the epoch of an arbiter. It is the first entry of each.
	Promoted Kind = iota + 32
	// Promised: capacity on nodes is promised to a unit for a while.
	Promised
	// PromiseEnded: the unit has its placement, is gone, or did not use the promise in time.
	PromiseEnded
)

// Entry is an entry of the log.
type Entry struct {
	Kind   Kind
	Change cluster.Change // if Kind is that of a change
	// Unit is the unit that was decided as a whole, of cluster.PodTaken, empty for a pod by itself; or the unit of a
	// promise.
	Unit    string
	Promise Promise // of Promised
}

// Promise is capacity that is promised to a unit.
type Promise struct {
	On    []Placement
	Until record.Time
}

// Placement is the node of a pod in a promise.
type Placement struct {
	Pod  *cluster.Pod
	Node string
}

// Of returns the entry of a change of the store.
func Of(ch cluster.Change) Entry { return Entry{Kind: Kind(ch.Kind), Change: ch} }

// entry writes an entry.
func (c *coder) entry(e *Entry) {
	kind := uint64(e.Kind)
	c.uint(&kind)
	ch := &e.Change
	if c.reads {
		if kind > uint64(PromiseEnded) {
			c.fail("an entry of the unknown kind %d", kind)
			return
		}
		if e.Kind = Kind(kind); e.Kind < Promoted {
			ch.Kind = cluster.ChangeKind(kind)
		}
	}
	switch e.Kind {
	case Promoted:
	case Promised:
		c.text(&e.Unit)
		c.time(&e.Promise.Until)
		list(c, &e.Promise.On, func(s *Placement) {
			c.pod(pointer(c, &s.Pod))
			name(c, &s.Node)
		})
	case PromiseEnded:
		c.text(&e.Unit)
	default:
		c.change(ch, e)
	}
}

func (c *coder) change(ch *cluster.Change, e *Entry) {
	switch ch.Kind {
	case cluster.NodeChanged:
		c.node(pointer(c, &ch.Node))
	case cluster.NodeRemoved:
		name(c, &ch.Name)
	case cluster.ObjectChanged, cluster.ObjectAssumed:
		c.object(&ch.Object)
	case cluster.ObjectRemoved, cluster.ObjectRestored:
		name(c, &ch.Type)
		name(c, &ch.Key.Namespace)
		c.text(&ch.Key.Name)
		if c.reads && cluster.EmptyObject(ch.Type) == nil {
			c.fail("an object of kind %q", ch.Type)
		}
	case cluster.PodBound:
		c.pod(pointer(c, &ch.Pod))
	case cluster.PodTaken:
		c.pod(pointer(c, &ch.Pod))
		name(c, &ch.Name)
		name(c, &e.Unit)
	case cluster.PodFreed, cluster.PodRemoved:
		c.uid(&ch.UID)
	default:
		c.fail("an entry of kind %d", ch.Kind)
	}
}

// A frame has the version of the form, the epoch, the position of the first entry, the number of entries, the entries,
// and a CRC-32C of all of that.

const formVersion = 1

// Bounds of a frame. A writer ends one when it has fullFrame bytes or more, so that the largest object fits.
const (
	MaxFrame  = 4 << 20
	fullFrame = 64 << 10
	maxCount  = 1 << 16
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	// ErrFrame is what the errors about damaged or foreign frames wrap.
	ErrFrame = errors.New("damaged frame")
)

// Writer encodes the log of an arbiter.
type Writer struct {
	c     *coder
	Facts         // as of Last
	frame []byte  // the open one, without its header
	count uint64  // of its entries
	first uint64  // of its entries
	done  []Frame // closed, and not taken yet
}

// Frame is encoded entries.
type Frame struct {
	First, Last shard.Position
	Bytes       []byte
}

// NewWriter returns the writer of the first arbiter of a cluster.
func NewWriter(epoch shard.Epoch) *Writer {
	w := &Writer{c: newCoder(false)}
	w.Promote(epoch)
	return w
}

// Promote begins an epoch. It must be newer than the one before.
func (w *Writer) Promote(epoch shard.Epoch) {
	if epoch <= w.Epoch() {
		panic(fmt.Sprintf("replica: epoch %d after %d", epoch, w.Epoch()))
	}
	w.end()
	w.Origins = append(w.Origins, shard.Origin{Epoch: epoch, First: w.Last + 1})
	w.Append(Entry{Kind: Promoted})
}

// Append adds an entry and returns its position.
func (w *Writer) Append(e Entry) shard.Position {
	if w.count == 0 {
		w.first = uint64(w.Last) + 1
	}
	w.c.buf = w.frame
	w.c.entry(&e)
	w.frame, w.c.buf = w.c.buf, nil
	w.count++
	if err := w.note(e); err != nil {
		panic(fmt.Sprintf("replica: %v", err)) // the entries of an arbiter are its own
	}
	if len(w.frame) >= fullFrame || w.count == maxCount {
		w.end()
	}
	return w.Last
}

// Frames returns the entries since the last call, in frames.
func (w *Writer) Frames() []Frame {
	w.end()
	done := w.done
	w.done = nil
	return done
}

// end closes the open frame.
func (w *Writer) end() {
	if w.count == 0 {
		return
	}
	b := make([]byte, 0, len(w.frame)+24)
	for _, v := range []uint64{formVersion, uint64(w.Epoch()), w.first, w.count} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, w.frame...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	w.done = append(w.done, Frame{First: shard.Position(w.first), Last: w.Last, Bytes: b})
	w.frame, w.count = w.frame[:0], 0
}

// open checks the checksum of data and returns what it covers.
func open(data []byte, most int) ([]byte, error) {
	if len(data) < 4 || len(data) > most {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are accepted", ErrFrame, len(data), most)
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrFrame)
	}
	return body, nil
}

// header reads the numbers at the beginning of a frame.
func (c *coder) header() (epoch shard.Epoch, first shard.Position, count uint64) {
	var v [4]uint64
	for i := range v {
		c.uint(&v[i])
	}
	if v[0] != formVersion {
		c.fail("form %d, this is %d", v[0], formVersion)
	}
	if v[3] == 0 || v[3] > maxCount {
		c.fail("%d entries", v[3])
	}
	return shard.Epoch(v[1]), shard.Position(v[2]), v[3]
}
