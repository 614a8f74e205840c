// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// scoresOf returns the scores of a pod on all rows by both forms, nil if the plugin does not score it.
func scoresOf(t interface {
	Helper()
	Fatalf(string, ...any)
}, s cluster.Snapshot, pl *VolumeBinding, p *cluster.Pod, rows []cluster.NodeIdx) []int64 {
	t.Helper()
	score, err := pl.PrepareUncached(s, p, rows)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if score == nil {
		return nil
	}
	out, plain := make([]int64, len(rows)), make([]int64, len(rows))
	score.Rows(s, rows, out)
	for i, n := range rows {
		plain[i] = score.Plain(s, &cluster.NodeView{Node: s.Node(n), Row: n})
	}
	score.Normalize(s, rows, out)
	if !slices.Equal(out, plain) {
		t.Fatalf("scores of %s: %v by rows, %v by node", p.Name, out, plain)
	}
	return out
}

// TestVolumeBindingScores: less utilization of the storage scores higher. Volumes that exist count before volumes that
// are made.
func TestVolumeBindingScores(t *testing.T) {
	node := func(name, zoneOf string) *v1.Node { return plugintest.Node(name, plugintest.Labels(zone, zoneOf)) }
	world := func() *plugintest.Cluster {
		return plugintest.NewCluster().With(node("n0", "a"), node("n1", "b"),
			storageClass("made", "telling", later), storageClass("other", "telling", later),
			storageClass("blind", "silent", later), storageClass("by-hand", noProvisioner, later), telling("telling"))
	}
	for name, c := range map[string]struct {
		objects []any
		claims  []*v1.PersistentVolumeClaim
		shape   []plugin.ShapePoint
		want    []int64
	}{
		"a volume is made": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made")}, want: []int64{50, 75}},
		"two volumes share the storage": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made"), wants("d", "4Gi", "made")}, want: []int64{10, 55}},
		"more than the storage has": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "9Gi", "made"), wants("d", "9Gi", "made")}, want: []int64{0, 10}},
		"storage of unknown capacity": {objects: []any{atMost(room("x", "made", "", where(zone, "a")), "10Gi"), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made")}, want: []int64{0, 75}},
		"the first of several storages": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("w", "made", "50Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made")}, want: []int64{90, 75}},
		"the mean of two classes, rounded": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b")), room("z", "other", "8Gi", nil), room("v", "other", "8Gi", where(zone, "a")), room("u", "other", "6Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made"), wants("d", "1Gi", "other")}, want: []int64{69, 80}},
		"no capacity is published": {claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "blind")}, want: []int64{0, 0}},
		"a volume is taken": {objects: []any{offered("pv", "10Gi", "by-hand", only(within(zone, "a"))), offered("pw", "20Gi", "by-hand", only(within(zone, "b")))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "by-hand")}, want: []int64{50, 75}},
		"one is taken, one made": {objects: []any{offered("pv", "10Gi", "by-hand", only(within(zone, "a"))), offered("pw", "20Gi", "by-hand", only(within(zone, "b"))), room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "10Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "by-hand"), wants("d", "1Gi", "made")}, want: []int64{50, 75}},
		"another shape": {objects: []any{room("x", "made", "10Gi", where(zone, "a")), room("y", "made", "20Gi", where(zone, "b"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "made")}, want: []int64{100, 50},
			shape: []plugin.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 50, Score: 10}}},
		"a bound volume": {objects: []any{offered("pv", "10Gi", "by-hand", claimedBy("c", "uid-c"))},
			claims: []*v1.PersistentVolumeClaim{wants("c", "5Gi", "by-hand", hasVolume("pv"))}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world().With(c.objects...)
			var names []string
			for _, claim := range c.claims {
				w.With(claim)
				names = append(names, claim.Name)
			}
			args := DefaultVolumeBindingArgs()
			if c.shape != nil {
				args.Shape = c.shape
			}
			pl, s := plugintest.Must(NewVolumeBinding(args)), w.Store.Snapshot()
			p := w.Intake.PendingPod(plugintest.Pod("p", mountsClaims(names...)))
			if plan := pl.PrepareFilter(s, p); plan.Filter == nil {
				t.Fatalf("%+v", plan)
			}
			n0, _ := s.Find("n0")
			n1, _ := s.Find("n1")
			if got := scoresOf(t, s, pl, p, []cluster.NodeIdx{n0, n1}); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestVolumeBindingScoresOnlyWhatItHasFiltered: without a filter of this pod, without claims or without a shape there is
// no score.
func TestVolumeBindingScoresOnlyWhatItHasFiltered(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"), wants("c", "5Gi", "made"),
		storageClass("made", "silent", later))
	s := w.Store.Snapshot()
	claims, plain := w.Intake.PendingPod(plugintest.Pod("p", mountsClaims("c"))), w.Intake.PendingPod(plugintest.Pod("q"))
	pl := binding()
	if !pl.Skips(s, plain) || pl.Skips(s, claims) {
		t.Error("pods with claims are scored, others are not")
	}
	row, _ := s.Find("n")
	rows := []cluster.NodeIdx{row}
	if got := scoresOf(t, s, pl, claims, rows); got != nil {
		t.Errorf("not filtered: %v", got)
	}
	pl.PrepareFilter(s, plain)
	if got := scoresOf(t, s, pl, plain, rows); got != nil {
		t.Errorf("no claims: %v", got)
	}
	shapeless := plugintest.Must(NewVolumeBinding(VolumeBindingArgs{}))
	shapeless.PrepareFilter(s, claims)
	if got := scoresOf(t, s, shapeless, claims, rows); got != nil || !shapeless.Skips(s, claims) {
		t.Errorf("no shape: %v", got)
	}
	pl.PrepareFilter(s, claims)
	if got := scoresOf(t, s, pl, claims, rows); !slices.Equal(got, []int64{0}) {
		t.Errorf("got %v", got)
	}
	other := w.Intake.PendingPod(plugintest.Pod("other", mountsClaims("c")))
	if got := scoresOf(t, s, pl, other, rows); got != nil {
		t.Errorf("another pod was filtered: %v", got)
	}
}
