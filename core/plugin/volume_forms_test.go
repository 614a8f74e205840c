// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The words of random clusters with volumes: few, so that they meet.
var (
	someClaims  = []string{"c0", "c1", "c2", "c3", "c4", "gone"}
	someDrivers = []string{disk, net, ebsDriver, fileDriver}
	someDisks   = []string{"vol-a", "vol-b", "bad"}
	somePlaces  = []string{"a", "b", "a__b", "a__", "c"}
)

func randomVolumes(t *rapid.T, p *v1.Pod) *v1.Pod {
	for range rapid.IntRange(0, 3).Draw(t, "volumes") {
		read := rapid.Bool().Draw(t, "read only")
		name := pick(t, someDisks, "disk")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			mountsEphemeral(p)
		case 1:
			if name != "bad" || chance(t, 20, "bad") {
				mountsEBS(name, read)(p)
			}
		case 2:
			mountsGCE(name, read)(p)
		case 3:
			mountsRBD("pool", read, name)(p)
		case 4:
			mountsFile(p)
		case 5:
			if chance(t, 10, "nameless") {
				mountsClaims("")(p)
			}
		default:
			mountsClaims(pick(t, someClaims, "claim"))(p)
		}
	}
	return p
}

func randomClaim(t *rapid.T, name string) *v1.PersistentVolumeClaim {
	c := storageClaim(name, "")
	if chance(t, 60, "bound") {
		c.Spec.VolumeName = pick(t, []string{"pv0", "pv1", "pv2", "pv3", "pv-gone"}, "volume")
	}
	if chance(t, 70, "class") {
		ofClass(pick(t, []string{"now", "later", "ebs", "file", "gone"}, "class"))(c)
	}
	if chance(t, 30, "for one pod") {
		forOnePod(c)
	}
	return c
}

func randomVolume(t *rapid.T, name string) *v1.PersistentVolume {
	pv := volume(name, pick(t, append(someDrivers, ""), "driver"))
	switch rapid.IntRange(0, 4).Draw(t, "in-tree") {
	case 0:
		inTree(pv, v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: pick(t, someDisks, "disk")}})
	case 1:
		inTree(pv, v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{}})
	}
	for _, label := range zoneLabels {
		if chance(t, 20, label) {
			pv.Labels[label] = pick(t, somePlaces, "place")
		}
	}
	return pv
}

func randomCSINode(t *rapid.T, name string) *storagev1.CSINode {
	c := csiNode(name)
	for _, driver := range someDrivers {
		if chance(t, 70, driver) {
			c.Spec.Drivers = append(c.Spec.Drivers, csiNode("", driver, rapid.IntRange(-1, 4).Draw(t, "limit")).Spec.Drivers...)
		}
	}
	return c
}

// randomVolumeWorld has nodes in zones, with what their drivers can attach, claims, volumes, and pods that use them.
func randomVolumeWorld(t *rapid.T, most int) (w *world, nodes int) {
	w, nodes = newWorld(), rapid.IntRange(1, most).Draw(t, "nodes")
	w.with(storageClass("now", disk, storagev1.VolumeBindingImmediate), storageClass("later", net, storagev1.VolumeBindingWaitForFirstConsumer),
		storageClass("ebs", ebsPlugin, storagev1.VolumeBindingWaitForFirstConsumer), storageClass("file", filePlugin, storagev1.VolumeBindingWaitForFirstConsumer))
	var kinds []*v1.Node
	for range rapid.IntRange(1, 5).Draw(t, "kinds") {
		n := node("")
		for _, l := range zoneLabels {
			if chance(t, 30, l) {
				label(l, pick(t, []string{"a", "b", "c", ""}, "place"))(n)
			}
		}
		declares(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID[string]).Draw(t, "features")...)(n)
		kinds = append(kinds, n)
	}
	for i := range nodes {
		n := pick(t, kinds, "kind").DeepCopy()
		n.Name = nodeName(i)
		w.with(n)
		if i < 6 && chance(t, 80, "CSINode") {
			w.with(randomCSINode(t, n.Name))
		}
	}
	for _, name := range someClaims[:5] {
		w.with(randomClaim(t, name))
	}
	for i := range 4 {
		w.with(randomVolume(t, fmt.Sprint("pv", i)))
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		changeVolumes(t, w, nodes, 3, fmt.Sprint("bound", i))
	}
	return w, nodes
}

// changeVolumes does something small to a world; kind 3 binds a pod of that name.
func changeVolumes(t *rapid.T, w *world, nodes, kind int, name string) {
	on := nodeName(rapid.IntRange(0, min(nodes, 7)).Draw(t, "on")) // perhaps one that does not exist
	switch kind {
	case 0:
		w.with(randomClaim(t, pick(t, someClaims[:5], "claim")))
	case 1:
		w.with(randomVolume(t, fmt.Sprint("pv", rapid.IntRange(0, 3).Draw(t, "pv"))))
	case 2:
		w.with(randomCSINode(t, on))
	case 3:
		p := randomVolumes(t, pod(name, onNode(on)))
		w.with(p)
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Ephemeral == nil || chance(t, 20, "no claim yet") {
				continue
			}
			c := randomClaim(t, name+"-"+p.Spec.Volumes[i].Name)
			if !chance(t, 10, "of somebody else") {
				ownedBy("uid-" + name)(c)
			}
			w.with(c)
		}
	case 4:
		w.with(attachment(fmt.Sprint("va", rapid.IntRange(0, 5).Draw(t, "attachment")), on,
			pick(t, append(someDrivers, ""), "driver"), pick(t, []string{"pv0", "pv1", "pv2", "pv3", ""}, "volume")))
	case 5:
		w.store.DeleteNode(on)
	case 6:
		w.store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 8).Draw(t, "gone"))))
	case 7:
		w.store.DeleteObject(cluster.KindAttachment, cluster.ObjectKey{Name: fmt.Sprint("va", rapid.IntRange(0, 5).Draw(t, "attachment"))})
	}
}

// A column form says what the plain form says of each row, errors included, before and after the cluster changes; on
// many rows and on one. Mutants: limits-special-free, limits-column-blind, zone-column-heir-only, and every other that
// is built into one form alone.
func propertyVolumeForms(t *rapid.T) {
	w, nodes := randomVolumeWorld(t, 300)
	limits := NewNodeVolumeLimits(fakeMigration{})
	for step := range 4 {
		s := w.store.Snapshot()
		p := w.intake.Pod(randomVolumes(t, pod("pending")))
		if features := rapid.SampledFrom([][]string{nil, {"A"}, {"A", "C"}}).Draw(t, "needs"); features != nil {
			p = needing(p, features...)
		}
		for _, pl := range []Filter{VolumeRestrictions{}, limits, VolumeZone{}, NodeDeclaredFeatures{}} {
			f := pl.PrepareFilter(s, p).Filter
			if f == nil {
				continue
			}
			rows := cluster.NodeIdx(s.Rows())
			lo := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "from"))
			sameForms(t, s, []preparedPlugin{{name: pl.Name(), filter: f}}, 0, rows)
			sameForms(t, s, []preparedPlugin{{name: pl.Name(), filter: f}}, lo, rows)
			for n := range min(rows, 8) {
				if s.Node(n) == nil {
					continue
				}
				plain := wordsOf(f, f.Plain(s, s.View(n)))
				out := make([]Verdict, rows)
				f.Column(s, n, n+1, TagOf(0), out)
				if column := wordsOf(f, out[n].Code()); column != plain {
					t.Fatalf("%s on row %d: column %q, plain %q", pl.Name(), n, column, plain)
				}
			}
		}
		changeVolumes(t, w, nodes, rapid.IntRange(0, 7).Draw(t, "change"), fmt.Sprint("late", step))
	}
}

func TestVolumeColumnsSayWhatPlainFormsSay(t *testing.T) { rapid.Check(t, propertyVolumeForms) }

// What is supposed to come and go in any order leaves no trace once it has gone and come again.
func TestSupposedVolumesLeaveNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := randomVolumeWorld(t, 4)
		s := w.store.Snapshot()
		f, ok := VolumeRestrictions{}.PrepareFilter(s, w.intake.Pod(randomVolumes(t, pod("pending")))).Filter.(*restrictionFilter)
		if !ok {
			return
		}
		before, others := f.used, []*cluster.Pod{}
		for i := range rapid.IntRange(1, 4).Draw(t, "others") {
			others = append(others, w.intake.Pod(randomVolumes(t, pod(fmt.Sprint("other", i)))))
			f.AddPod(s, others[i], nil)
		}
		for _, other := range rapid.Permutation(others).Draw(t, "order") {
			f.RemovePod(s, other, nil)
		}
		if f.used != before {
			t.Fatalf("%d uses of the claims, at first there were %d", f.used, before)
		}
	})
}
