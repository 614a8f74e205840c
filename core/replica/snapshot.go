// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// MaxSnapshot bounds what a follower loads. 150,000 pods take about 20 MB.
const MaxSnapshot = 1 << 30

// Snapshot returns the state of an arbiter's store at the last position of its log: all that a follower needs to
// continue from there. Must be called when every change of the store is in the log.
func (w *Writer) Snapshot(store *cluster.Store) []byte {
	w.end()
	st := store.State()
	st.Sort()
	c := newCoder(false)
	c.snapshot(&w.Facts, w.c, &st)
	return binary.LittleEndian.AppendUint32(c.buf, crc32.Checksum(c.buf, castagnoli))
}

// Load returns a follower that continues from a snapshot.
func Load(snapshot []byte) (*Follower, error) {
	body, err := open(snapshot, MaxSnapshot)
	if err != nil {
		return nil, fmt.Errorf("loading a snapshot: %w", err)
	}
	f, c := NewFollower(), newCoder(true)
	f.c.share, c.buf = c.share, body
	var st cluster.State
	if c.snapshot(&f.Facts, f.c, &st); c.err != nil {
		return nil, fmt.Errorf("loading a snapshot: %w: %w", ErrFrame, c.err)
	}
	if len(c.buf) > 0 {
		return nil, fmt.Errorf("loading a snapshot: %w: %d bytes after its end", ErrFrame, len(c.buf))
	}
	if err := sameObjects(&st); err != nil {
		return nil, fmt.Errorf("loading a snapshot: %w", err)
	}
	if err := f.store.Restore(st); err != nil {
		return nil, fmt.Errorf("loading a snapshot: %w", err)
	}
	for uid := range f.Taken { // order: any violation suffices
		if _, _, assumed, held := f.store.Snapshot().PodOn(uid); !held || !assumed {
			return nil, fmt.Errorf("loading a snapshot: pod %s was decided, and its capacity is not assumed", uid)
		}
	}
	return f, nil
}

// sameObjects returns an error if an object is assumed to be another one than it is.
func sameObjects(st *cluster.State) error {
	for _, o := range st.Objects {
		if o.API == nil || o.Assumed == nil {
			continue
		}
		a, b := cluster.KindOf(o.API), cluster.KindOf(o.Assumed)
		if a != b || cluster.KeyOf(o.API) != cluster.KeyOf(o.Assumed) {
			return fmt.Errorf("%s %v is assumed to be %s %v", a, cluster.KeyOf(o.API), b, cluster.KeyOf(o.Assumed))
		}
	}
	return nil
}

// snapshot writes a state and what the log says besides: facts, and the dictionaries of the log's coder.
func (c *coder) snapshot(f *Facts, log *coder, st *cluster.State) {
	version := uint64(formVersion)
	if c.uint(&version); version != formVersion {
		c.fail("form %d, this is %d", version, formVersion)
	}
	c.uint((*uint64)(&f.Last))
	list(c, &f.Origins, func(o *shard.Origin) {
		c.uint((*uint64)(&o.Epoch))
		c.uint((*uint64)(&o.First))
	})
	dictionary(c, &log.names, c.text)
	dictionary(c, &log.blobs, c.text)
	dictionary(c, &log.specs, func(s **cluster.PodSpec) { c.spec(s) })
	c.facts(f)
	c.state(st)
}

// dictionary writes a ring.
func dictionary[T comparable](c *coder, r *ring[T], each func(*T)) {
	long(c, &r.of, each)
	if c.int(&r.next); len(r.of) > r.size || r.next < 0 || r.next > len(r.of) || r.next >= r.size ||
		len(r.of) < r.size && r.next != len(r.of) {
		c.fail("a dictionary of %d of %d, the next is %d", len(r.of), r.size, r.next)
		r.of, r.next = nil, 0
	}
}

// long writes a list of any length; empty and nil are alike.
func long[T any](c *coder, l *[]T, each func(*T)) {
	n := uint64(len(*l))
	if c.uint(&n); n > uint64(len(c.buf)) && c.reads {
		c.fail("a list of %d elements", n)
		return
	}
	if !c.reads {
		for i := range *l {
			each(&(*l)[i])
		}
		return
	}
	for range n {
		var v T
		if each(&v); c.err != nil {
			return
		}
		*l = append(*l, v)
	}
}

func (c *coder) facts(f *Facts) {
	if c.reads {
		f.Taken, f.Promises = map[cluster.UID]Taken{}, map[string]Promise{}
	}
	pods := sortedKeys(f.Taken)
	long(c, &pods, func(uid *cluster.UID) {
		t := f.Taken[*uid]
		c.uid(uid)
		c.uint((*uint64)(&t.At))
		if name(c, &t.Unit); c.reads {
			f.Taken[*uid] = t
		}
	})
	units := sortedKeys(f.Promises)
	long(c, &units, func(unit *string) {
		p := f.Promises[*unit]
		c.text(unit)
		c.time(&p.Until)
		list(c, &p.On, func(s *Placement) {
			c.pod(pointer(c, &s.Pod))
			name(c, &s.Node)
		})
		if c.reads {
			f.Promises[*unit] = p
		}
	})
}

func (c *coder) state(st *cluster.State) {
	c.uint(&st.Revision)
	long(c, &st.Rows, c.row)
	long(c, &st.Free, func(n *cluster.NodeIdx) { c.int32((*int32)(n)) })
	long(c, &st.Resources, func(s *v1.ResourceName) { name(c, s) })
	long(c, &st.Objects, func(o *cluster.ObjectState) {
		c.parts(
			optional{o.API != nil, func() { c.object(&o.API) }},
			optional{o.Assumed != nil, func() { c.object(&o.Assumed) }},
		)
	})
	if c.reads {
		st.Images = map[string]int64{}
	}
	images := sortedKeys(st.Images)
	long(c, &images, func(image *string) {
		size := st.Images[*image]
		name(c, image)
		if c.int64(&size); c.reads {
			st.Images[*image] = size
		}
	})
	for _, shapes := range []*[]cluster.Shape{&st.Mix.Seen, &st.Mix.Shown} {
		long(c, shapes, func(s *cluster.Shape) {
			c.amounts(&s.Held)
			c.int64(&s.Pods)
		})
	}
	c.int64(&st.Mix.Next)
}

func (c *coder) row(r *cluster.RowState) {
	name(c, &r.Name)
	c.parts(optional{r.Node != nil, func() { c.node(pointer(c, &r.Node)) }})
	long(c, &r.Pods, func(held *cluster.HeldPod) {
		c.pod(pointer(c, &held.Pod))
		same := held.Gang == held.Pod.Gang
		b := c.bits(held.Assumed, held.Apart, same, held.Gang != nil)
		if c.reads {
			held.Assumed, held.Apart = b.has(0), b.has(1)
		}
		switch {
		case b.has(2) && c.reads:
			held.Gang = held.Pod.Gang
		case !b.has(2) && b.has(3):
			c.mark(pointer(c, &held.Gang))
		}
	})
}
