// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// arbiter is a store with its log.
type arbiter struct {
	store  *cluster.Store
	in     *convert.Intake
	log    *Writer
	window *Window
	texts  map[shard.Position]string // position -> what the state was there
}

func newArbiter() *arbiter {
	a := &arbiter{store: cluster.NewStore(), in: convert.NewIntake(), log: NewWriter(1), window: NewWindow(40),
		texts: map[shard.Position]string{}}
	a.store.KeepChanges()
	a.texts[0] = textOf(a.store, &Facts{})
	return a
}

// publish appends the changes of the store and ends a frame.
func (a *arbiter) publish() {
	for _, ch := range a.store.TakeChanges() {
		e := Of(ch)
		if ch.Kind == cluster.PodTaken {
			e.Unit = "unit-of-" + ch.Pod.Name
		}
		a.log.Append(e)
	}
	a.window.Add(a.log.Frames()...)
	a.texts[a.log.Last] = textOf(a.store, &a.log.Facts)
}

// textOf is all that a state says: nodes, pods in the order of the ledger, objects, and what the log adds. It leaves
// out what only caches compare: the revision and the numbers of rows and resources, which also count what was undone.
func textOf(s *cluster.Store, f *Facts) string {
	st := s.State()
	st.Sort()
	st.Rows = slices.DeleteFunc(st.Rows, func(r cluster.RowState) bool { return r.Name == "" })
	slices.SortFunc(st.Rows, func(a, b cluster.RowState) int { return strings.Compare(a.Name, b.Name) })
	st.Revision, st.Free, st.Resources = 0, nil, nil
	st.Mix.Seen, st.Mix.Shown = append([]cluster.Shape{}, st.Mix.Seen...), append([]cluster.Shape{}, st.Mix.Shown...)
	return jsonOf(st) + jsonOf(f.Last) + jsonOf(f.Origins) + jsonOf(f.Taken) + jsonOf(f.Promises)
}

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// catchUp brings a follower to the arbiter's position: by frames, or by a snapshot.
func (a *arbiter) catchUp(t interface{ Fatal(...any) }, f *Follower) (*Follower, string) {
	frames, ok := a.window.After(f.Last)
	if !ok {
		loaded, err := Load(a.log.Snapshot(a.store))
		if err != nil {
			t.Fatal(err)
		}
		return loaded, "snapshot"
	}
	for _, frame := range frames {
		if err := f.Apply(frame.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	return f, "frames"
}

func drawNode(t *rapid.T, in *convert.Intake) *cluster.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))}}
	n.UID = types.UID(rapid.SampledFrom([]string{"", "7d4b1f6e-93a1-4f0e-8d59-0a1b2c3d4e5f", "other"}).Draw(t, "uid"))
	n.Labels = rapid.SampledFrom([]map[string]string{nil, {}, {"zone": "a"}, {"zone": "b", "disk": ""}}).Draw(t, "labels")
	n.Spec.Unschedulable = rapid.Bool().Draw(t, "unschedulable")
	if rapid.Bool().Draw(t, "tainted") {
		at := metav1.Unix(1700000000, 0)
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoExecute, TimeAdded: &at}, {Key: "l", Value: "v"}}
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), "example.com/gpu": apiresource.MustParse("2")}
	if rapid.Bool().Draw(t, "image") {
		n.Status.Images = []v1.ContainerImage{{Names: []string{"pause:1", "pause@x"}, SizeBytes: 700}}
	}
	return in.Node(n)
}

// drawPod is a version of one of eight pods, of a few templates. Some templates use much of what a spec can have.
func drawPod(t *rapid.T, in *convert.Intake) *cluster.Pod {
	i := rapid.IntRange(0, 7).Draw(t, "pod")
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "ns",
		UID: types.UID(fmt.Sprintf("0f0e0d0c-0b0a-4900-8800-00000000000%d", i))}}
	p.ResourceVersion = rapid.SampledFrom([]string{"", "17", "017", "rv"}).Draw(t, "version")
	p.Labels = map[string]string{"app": "web", "name": p.Name}
	p.CreationTimestamp = metav1.Unix(1700000000, 0)
	c := v1.Container{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse(rapid.SampledFrom([]string{"0", "100m", "1"}).Draw(t, "cpu"))}}}
	if rapid.Bool().Draw(t, "rich") {
		seconds := int64(30)
		c.Ports = []v1.ContainerPort{{HostPort: 80, Protocol: v1.ProtocolTCP}}
		p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists, TolerationSeconds: &seconds}}
		p.Spec.NodeSelector = map[string]string{}
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
		p.Annotations = map[string]string{"pod_group": "g", "pod_group_size": "2"}
	}
	p.Spec.Containers = []v1.Container{c}
	p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "bound to"))
	rec := *in.Pod(p)
	rec.Terminating = rapid.Bool().Draw(t, "terminating")
	rec.GoneBy = record.Time(rapid.SampledFrom([]int64{0, 5, 1700000000e9, -1}).Draw(t, "gone by"))
	if rapid.Bool().Draw(t, "condition") {
		rec.Condition = cluster.Condition{Reason: "Unschedulable", Message: "no", Generation: 3}
		rec.Bound = &cluster.BoundMark{Decision: 1 << 60, Quorum: 2}
		rec.Claims = &cluster.PodClaims{Statuses: []v1.PodResourceClaimStatus{{Name: "c"}}}
	}
	return &rec
}

// change makes one random change, or a trial of several.
func (a *arbiter) change(t *rapid.T) {
	s := a.store
	claim := func() *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
		c.ResourceVersion = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "claim version")
		c.Spec.VolumeName = rapid.SampledFrom([]string{"", "v"}).Draw(t, "volume")
		return c
	}
	uid := func() cluster.UID { return drawPod(t, a.in).UID }
	switch rapid.SampledFrom([]string{"node", "node", "node gone", "bound", "bound", "pod gone", "forget", "object",
		"object gone", "trial", "trial", "trial"}).Draw(t, "change") {
	case "node":
		s.SetNode(drawNode(t, a.in))
	case "node gone":
		s.DeleteNode(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "gone")))
	case "bound":
		s.SetPod(drawPod(t, a.in))
	case "pod gone":
		s.DeletePod(uid())
	case "forget":
		s.Forget(uid())
	case "object":
		if rapid.Bool().Draw(t, "gang") {
			s.SetObject(&cluster.Gang{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "podgroup/g"}, MinCount: 2})
		} else {
			s.SetObject(claim())
		}
	case "object gone":
		s.DeleteObject(cluster.KindClaim, cluster.ObjectKey{Namespace: "ns", Name: "claim"})
	case "trial":
		a.trial(t, claim)
	}
}

func (a *arbiter) trial(t *rapid.T, claim func() *v1.PersistentVolumeClaim) {
	tr := a.store.Trial()
	mark := tr.Checkpoint()
	for range rapid.IntRange(0, 5).Draw(t, "trial steps") {
		p := drawPod(t, a.in)
		p.NodeName = ""
		row, exists := a.store.Snapshot().Find(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "on")))
		_, _, _, held := a.store.Snapshot().PodOn(p.UID)
		switch step := rapid.SampledFrom([]string{"place", "place", "mark", "back", "assume", "restore"}).Draw(t, "step"); {
		case step == "place" && held:
			tr.Evict(p.UID)
		case step == "place" && exists:
			tr.Assume(p, row)
		case step == "mark":
			mark = tr.Checkpoint()
		case step == "back":
			tr.Rollback(mark)
		case step == "assume":
			c := claim()
			known, _ := cluster.FindAPI[*v1.PersistentVolumeClaim](a.store.Snapshot(), "ns", "claim")
			if c.ResourceVersion = ""; known != nil {
				c.ResourceVersion = known.ResourceVersion
			}
			tr.AssumeObject(c)
		case step == "restore":
			tr.RestoreObject(cluster.KindClaim, cluster.ObjectKey{Namespace: "ns", Name: "claim"})
		}
	}
	if rapid.Bool().Draw(t, "discard") {
		tr.Discard()
	} else {
		tr.Commit()
	}
}

// promise adds or ends a promise.
func (a *arbiter) promise(t *rapid.T) {
	unit := fmt.Sprintf("u%d", rapid.IntRange(0, 2).Draw(t, "unit"))
	if rapid.Bool().Draw(t, "ends") {
		a.log.Append(Entry{Kind: PromiseEnded, Unit: unit})
		return
	}
	a.log.Append(Entry{Kind: Promised, Unit: unit, Promise: Promise{
		On: []Placement{{drawPod(t, a.in), "n1"}}, Until: record.Second + 1}})
}

// TestReplicaEqualsTheLedger: random histories of a store, with transactions that are aborted and trials that are
// undone, are followed by two followers: one that gets each frame, and one that comes back now and then and loads
// a snapshot if the window has gone on. At each position that a follower reaches, its state is the arbiter's at that
// position. The arbiter changes now and then: a follower goes on in its place, and the other follows it.
func TestReplicaEqualsTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArbiter()
		near, far := NewFollower(), NewFollower()
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			a.store.Begin()
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				a.change(t)
			}
			if rapid.IntRange(0, 3).Draw(t, "abort") == 0 {
				a.store.Abort()
			} else {
				a.store.Commit()
			}
			if rapid.IntRange(0, 3).Draw(t, "promise") == 0 {
				a.promise(t)
			}
			a.publish()
			near, _ = a.catchUp(t, near)
			a.compare(t, near, "the near follower")
			if rapid.IntRange(0, 4).Draw(t, "far") == 0 {
				var by string
				far, by = a.catchUp(t, far)
				a.compare(t, far, "the far follower, by "+by)
			}
			if rapid.IntRange(0, 6).Draw(t, "succession") == 0 {
				heir := near
				a = &arbiter{store: heir.Store(), in: a.in, log: heir.Become(heir.Epoch() + 1), window: NewWindow(40), texts: a.texts}
				a.store.KeepChanges()
				near = NewFollower()
				a.publish()
				near, _ = a.catchUp(t, near)
				a.compare(t, near, "a follower of the successor")
			}
		}
	})
}

func (a *arbiter) compare(t *rapid.T, f *Follower, who string) {
	if want, got := a.texts[f.Last], textOf(f.Store(), &f.Facts); got != want || f.Last != a.log.Last {
		t.Fatalf("%s at %d of %d:\n got %s\nwant %s", who, f.Last, a.log.Last, got, want)
	}
	if err := cluster.NewStore().Restore(f.Store().State()); err != nil {
		t.Fatal(err)
	}
}

// A log that is cut anywhere is a prefix: a follower that has k frames is where the arbiter was after them, and goes
// on from there, or stays there if a later frame comes too early, is damaged, or comes again.
func TestCutLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArbiter()
		a.window = NewWindow(1 << 20)
		for range rapid.IntRange(2, 8).Draw(t, "frames") {
			a.store.Begin()
			a.change(t)
			a.store.Commit()
			a.promise(t)
			a.publish()
		}
		frames, _ := a.window.After(0)
		cut := rapid.IntRange(0, len(frames)-2).Draw(t, "cut")
		f := NewFollower()
		for _, frame := range frames[:cut] {
			if err := f.Apply(frame.Bytes); err != nil {
				t.Fatal(err)
			}
		}
		same := func(when string) {
			if want, got := a.texts[f.Last], textOf(f.Store(), &f.Facts); got != want {
				t.Fatalf("%s, at %d:\n got %s\nwant %s", when, f.Last, got, want)
			}
		}
		same("after the cut")
		if cut > 0 {
			if err := f.Apply(frames[rapid.IntRange(0, cut-1).Draw(t, "again")].Bytes); err != nil {
				t.Fatalf("a repeated frame: %v", err)
			}
			same("after a repeated frame")
		}
		bad := slices.Clone(frames[cut].Bytes)
		switch rapid.IntRange(0, 2).Draw(t, "what") {
		case 0:
			bad = frames[cut+1].Bytes
		case 1:
			bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 2:
			bad = bad[:rapid.IntRange(0, len(bad)-1).Draw(t, "length")]
		}
		if f.Apply(bad) == nil {
			t.Fatal("a frame that is damaged or comes too early is applied")
		}
		same("after a bad frame")
		if f.Apply(frames[cut].Bytes) == nil {
			t.Fatal("a follower goes on after an error")
		}
	})
}
