// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// sealed is a frame with a valid header and checksum around entries.
func sealed(epoch, first, count uint64, entries []byte) []byte {
	var b []byte
	for _, v := range []uint64{formVersion, epoch, first, count} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, entries...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// example is an arbiter with two nodes, a bound pod, and a gang of two that is decided.
func example(t *testing.T) *arbiter {
	t.Helper()
	a := newArbiter()
	a.store.SetNode(&cluster.Node{Name: "a"})
	a.store.SetNode(&cluster.Node{Name: "b"})
	spec := &cluster.PodSpec{}
	a.store.SetPod(&cluster.Pod{UID: "bound", Namespace: "ns", Name: "bound", NodeName: "a", Spec: spec})
	a.store.Begin()
	tr := a.store.Trial()
	tr.Assume(&cluster.Pod{UID: "g0", Namespace: "ns", Name: "g0", Spec: spec}, 0)
	tr.Assume(&cluster.Pod{UID: "g1", Namespace: "ns", Name: "g1", Spec: spec}, 1)
	tr.Commit()
	a.store.Commit()
	for _, ch := range a.store.TakeChanges() {
		e := Of(ch)
		if ch.Kind == cluster.PodTaken {
			e.Unit = "gang"
		}
		a.log.Append(e)
	}
	a.publish()
	return a
}

func follow(t *testing.T, a *arbiter) *Follower {
	t.Helper()
	f, by := a.catchUp(t, NewFollower())
	if by != "frames" {
		t.Fatalf("followed by %s", by)
	}
	return f
}

// A successor inherits the decisions whose outcome the log does not show: of a gang of two, one bind of which was
// observed, the other one. What it inherits is the same after a snapshot.
func TestSuccessorInherits(t *testing.T) {
	a := example(t)
	observed := *a.mustHave(t, "g0")
	observed.NodeName = "a"
	a.store.SetPod(&observed)
	a.publish()
	loaded, err := Load(a.log.Snapshot(a.store))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Follower{follow(t, a), loaded} {
		list := f.Inherited(f.Store().Snapshot())
		if len(list) != 1 || list[0].Pod.Name != "g1" || list[0].Node != "b" || list[0].Unit != "gang" {
			t.Fatalf("inherited: %+v", list)
		}
		w := f.Become(2)
		if w.Epoch() != 2 || w.Last != a.log.Last+1 {
			t.Errorf("the successor is at %d of epoch %d", w.Last, w.Epoch())
		}
	}
}

// Capacity of a bind that failed is free at the follower too.
func TestFreedCapacity(t *testing.T) {
	a := example(t)
	f := follow(t, a)
	a.store.Forget("g1")
	a.publish()
	if f, _ = a.catchUp(t, f); textOf(f.Store(), &f.Facts) != a.texts[a.log.Last] {
		t.Errorf("got %s, want %s", textOf(f.Store(), &f.Facts), a.texts[a.log.Last])
	}
}

func (a *arbiter) mustHave(t *testing.T, uid cluster.UID) *cluster.Pod {
	t.Helper()
	p, _, _, held := a.store.Snapshot().PodOn(uid)
	if !held {
		t.Fatalf("pod %s is not in the ledger", uid)
	}
	return p
}

// A follower refuses what does not follow from its state: entries of an older epoch, an epoch without its promotion,
// capacity that is freed though it was never taken, or taken twice, an unknown node, a kind from the future.
func TestFollowerRefuses(t *testing.T) {
	entries := func(list ...Entry) []byte {
		c := newCoder(false)
		for _, e := range list {
			c.entry(&e)
		}
		return c.buf
	}
	pod := &cluster.Pod{UID: "g0", Namespace: "ns", Name: "g0", Spec: &cluster.PodSpec{}}
	other := &cluster.Pod{UID: "x", Namespace: "ns", Name: "x", Spec: &cluster.PodSpec{}}
	for name, c := range map[string]struct {
		epoch uint64
		raw   []byte
		want  string
	}{
		"old epoch":      {0, entries(Entry{Kind: PromiseEnded}), "entries of epoch 0 after those of 1"},
		"no promotion":   {2, entries(Entry{Kind: PromiseEnded}), "epoch 2 after epoch 1"},
		"twice promoted": {1, entries(Entry{Kind: Promoted}), "epoch 1 after epoch 1"},
		"never taken": {1, entries(Of(cluster.Change{Kind: cluster.PodFreed, UID: "bound"})),
			"no capacity is assumed for it"},
		"taken twice":  {1, entries(Of(cluster.Change{Kind: cluster.PodTaken, Pod: pod, Name: "a"})), "holds capacity already"},
		"unknown node": {1, entries(Of(cluster.Change{Kind: cluster.PodTaken, Pod: other, Name: "z"})), `no node "z"`},
		"unknown pod":  {1, entries(Of(cluster.Change{Kind: cluster.PodRemoved, UID: "z"})), "holds no capacity"},
		"not bound":    {1, entries(Of(cluster.Change{Kind: cluster.PodBound, Pod: other})), "bound to no node"},
		"future":       {1, []byte{31}, "kind 31"},
		"far future":   {1, binary.AppendUvarint(nil, 256+uint64(cluster.PodFreed)), "unknown kind 265"},
		"nothing":      {1, nil, "ends in the middle"},
		"too much":     {1, append(entries(Entry{Kind: PromiseEnded}), 0), "1 bytes after the last entry"},
		"a long list":  {1, append(binary.AppendUvarint([]byte{33, 0, 0, 0}, 1<<40), 0), "a list of 1099511627775 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			a := example(t)
			f := follow(t, a)
			f.c.specs, f.c.names = ring[*cluster.PodSpec]{size: maxSpecs}, ring[string]{size: maxNames}
			err := f.Apply(sealed(c.epoch, uint64(f.Last)+1, 1, c.raw))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A window keeps at least as many entries as it was made for, and no frame that is older than these.
func TestWindow(t *testing.T) {
	w := NewWindow(10)
	for i := range shard.Position(8) {
		w.Add(Frame{First: i*3 + 1, Last: i*3 + 3})
	}
	for at, ok := range map[shard.Position]bool{0: false, 6: false, 9: false, 12: true, 13: false, 21: true, 24: true, 25: false} {
		if frames, got := w.After(at); got != ok || ok && len(frames) != int(24-at)/3 {
			t.Errorf("after %d: %d frames, %v", at, len(frames), got)
		}
	}
}

// When a dictionary is full, a new value takes the number of the oldest on both sides, also for a follower that joins
// in the middle and for a successor.
func TestDictionariesGoAround(t *testing.T) {
	w := NewWriter(1)
	store := cluster.NewStore()
	store.KeepChanges()
	f := NewFollower()
	step := func(i int) {
		store.SetNode(&cluster.Node{Name: fmt.Sprintf("n%d", i%7), Labels: map[string]string{"k": fmt.Sprint(i % 11)}})
		store.SetPod(&cluster.Pod{UID: cluster.UID(fmt.Sprint(i % 5)), Name: "p", NodeName: fmt.Sprintf("n%d", i%7),
			Spec: &cluster.PodSpec{Priority: int32(i % 9)}})
		for _, ch := range store.TakeChanges() {
			w.Append(Of(ch))
		}
		for _, frame := range w.Frames() {
			if err := f.Apply(frame.Bytes); err != nil {
				t.Fatal(err)
			}
		}
		if want, got := textOf(store, &w.Facts), textOf(f.Store(), &f.Facts); got != want {
			t.Fatalf("step %d:\n got %s\nwant %s", i, got, want)
		}
	}
	for _, c := range []*coder{w.c, f.c} {
		c.names.size, c.specs.size = 6, 3
	}
	for i := range 60 {
		step(i)
	}
	// The dictionaries of a snapshot go on where those of the log are.
	c := newCoder(false)
	st := store.State()
	c.snapshot(&w.Facts, w.c, &st)
	again, log := newCoder(true), newCoder(true)
	log.names.size, log.specs.size = 6, 3
	again.buf = c.buf
	var facts Facts
	if again.snapshot(&facts, log, &cluster.State{}); again.err != nil {
		t.Fatal(again.err)
	}
	if !slices.Equal(log.names.of, w.c.names.of) || log.names.next != w.c.names.next || log.specs.next != w.c.specs.next {
		t.Errorf("the dictionary is %q, next %d; want %q, next %d", log.names.of, log.names.next, w.c.names.of, w.c.names.next)
	}
	heir := f.Become(2)
	if heir.c.names.size, w = 6, heir; heir.Last != facts.Last+1 {
		t.Errorf("the successor is at %d", heir.Last)
	}
	store = f.Store()
	store.KeepChanges()
	f = NewFollower()
	f.c.names, f.c.specs = log.names, log.specs
	f.Facts = facts
	if err := f.store.Restore(st); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		step(i)
	}
}

// A damaged snapshot is an error, whatever is damaged.
func TestDamagedSnapshots(t *testing.T) {
	a := example(t)
	raw := a.log.Snapshot(a.store)
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 0x55
		if _, err := Load(bad); !errors.Is(err, ErrFrame) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

// An entry of a size that was seen in practice: 200 bytes is the goal for the mean of a pod's entries.
func TestSizes(t *testing.T) {
	a := newArbiter()
	var frames, entries int
	for i := range 2000 {
		benchPodLife(a, i)
		if a.publish(); i == 200 { // by now the dictionaries have what all pods share
			frames, entries = 0, -int(a.log.Last)
		}
		for _, f := range a.window.frames[len(a.window.frames)-1:] {
			frames += len(f.Bytes)
		}
	}
	entries += int(a.log.Last)
	if mean := frames / entries; mean > 100 {
		t.Errorf("%d bytes per entry", mean)
	} else {
		t.Logf("%d bytes per entry", mean)
	}
}

// FuzzEntries: whatever the entries of a frame are, a follower neither panics nor takes more memory than the frame's
// size permits, and what it accepts it can write again.
func FuzzEntries(f *testing.F) {
	a := newArbiter()
	for i := range 20 {
		benchPodLife(a, i)
	}
	a.store.SetObject(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}})
	a.publish()
	frames, _ := a.window.After(0)
	for _, frame := range frames {
		f.Add(frame.Bytes[4:len(frame.Bytes)-4], uint8(frame.len()))
	}
	f.Add([]byte{byte(Promoted)}, uint8(1))
	f.Fuzz(func(t *testing.T, entries []byte, count uint8) {
		follower := NewFollower()
		if follower.Apply(sealed(1, 1, uint64(count), entries)) != nil {
			return
		}
		heir := follower.Become(2)
		loaded, err := Load(heir.Snapshot(follower.Store()))
		if err != nil {
			t.Fatalf("what was accepted cannot be loaded again: %v", err)
		}
		if want, got := textOf(follower.Store(), &heir.Facts), textOf(loaded.Store(), &loaded.Facts); got != want {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	})
}

// FuzzSnapshot: whatever a snapshot contains, loading it is an error or gives a store whose invariants hold.
func FuzzSnapshot(f *testing.F) {
	a := newArbiter()
	for i := range 5 {
		benchPodLife(a, i)
	}
	a.publish()
	raw := a.log.Snapshot(a.store)
	f.Add(raw[:len(raw)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		loaded, err := Load(binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli)))
		if err != nil {
			return
		}
		if err := cluster.NewStore().Restore(loaded.Store().State()); err != nil {
			t.Fatal(err)
		}
	})
}
