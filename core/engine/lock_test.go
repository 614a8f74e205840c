// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// lock is a plugin for tests: a pod with the label lock or latch needs the PersistentVolume of that name for
// itself. The claimRef names the pod that has it, and the phase Bound says that it can be used. A lock is looked at
// by the filter too, a latch only when it is reserved.
type lock struct{}

// patience is how long a lock may take to become Bound.
const patience = 20 * record.Second

func (lock) Name() string { return "Lock" }

func wanted(p *cluster.Pod) string { return p.Spec.Labels["lock"] + p.Spec.Labels["latch"] }

func (lock) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Reject: trouble(s, p, p.Spec.Labels["lock"])}
}

// trouble is why p cannot have a lock.
func trouble(s cluster.Snapshot, p *cluster.Pod, name string) string {
	if name == "" {
		return ""
	}
	pv, ok := cluster.Find[*v1.PersistentVolume](s, "", name)
	switch {
	case !ok:
		return "there is no lock " + name
	case pv.Spec.ClaimRef != nil && string(pv.Spec.ClaimRef.UID) != string(p.UID):
		return "lock " + name + " is taken"
	}
	return ""
}

func (lock) Reserve(t *cluster.Trial, p *cluster.Pod, _ cluster.NodeIdx) plugin.Reserved {
	name := wanted(p)
	if name == "" {
		return plugin.Reserved{}
	}
	if why := trouble(t.Snapshot(), p, name); why != "" {
		return plugin.Reserved{Reject: why}
	}
	pv, _ := cluster.Find[*v1.PersistentVolume](t.Snapshot(), "", name)
	hold := &lockHold{name: name, version: pv.ResourceVersion, pod: p}
	if pv.Spec.ClaimRef == nil {
		taken := pv.DeepCopy()
		taken.Spec.ClaimRef = claimRef(p.Name, string(p.UID))
		t.AssumeObject(taken)
		hold.write = true
	}
	return plugin.Reserved{Hold: hold}
}

func claimRef(name, uid string) *v1.ObjectReference {
	return &v1.ObjectReference{Name: name, UID: types.UID(uid)}
}

type lockHold struct {
	name, version string
	pod           *cluster.Pod
	write         bool
	since         record.Time // of the first question
}

func (h *lockHold) Writes() []cluster.Write {
	if !h.write {
		return nil
	}
	target := cluster.Target{Kind: cluster.KindVolume, Name: h.name, ResourceVersion: h.version}
	return []cluster.Write{cluster.BindVolume{Target: target, Claim: cluster.Target{Name: h.pod.Name, UID: h.pod.UID}}}
}

func (h *lockHold) Ready(s cluster.Snapshot, now record.Time) plugin.Readiness {
	if h.since == 0 {
		h.since = now
	}
	pv, ok := cluster.FindAPI[*v1.PersistentVolume](s, "", h.name)
	switch {
	case !ok:
		return plugin.Readiness{Reject: "lock " + h.name + " is gone"}
	case pv.Status.Phase == v1.VolumeFailed:
		return plugin.Readiness{Err: errors.New("lock " + h.name + " is broken")}
	case pv.Spec.ClaimRef != nil && string(pv.Spec.ClaimRef.UID) == string(h.pod.UID) && pv.Status.Phase == v1.VolumeBound:
		return plugin.Readiness{Ready: true}
	case now-h.since >= patience:
		return plugin.Readiness{Err: errors.New("lock " + h.name + " took too long")}
	}
	return plugin.Readiness{Again: h.since + patience}
}

// lockFacts are the facts of a lockHold.
type lockFacts struct {
	Name, Version string
	Pod           *cluster.Pod
	Write         bool
	Since         record.Time
}

func (h *lockHold) Facts() any { return &lockFacts{h.name, h.version, h.pod, h.write, h.since} }

func (lock) NoFacts() any { return &lockFacts{} }

func (lock) Resume(facts any) (plugin.Reservation, error) {
	f := facts.(*lockFacts)
	return &lockHold{f.Name, f.Version, f.Pod, f.Write, f.Since}, nil
}

func (h *lockHold) Announce() plugin.Notice {
	return plugin.Notice{Reason: "LockWait", Action: "Scheduling", Note: "waits for lock " + h.name}
}

func (h *lockHold) Release(t *cluster.Trial, written bool) []cluster.Write {
	t.RestoreObject(cluster.KindVolume, cluster.ObjectKey{Name: h.name})
	if !written {
		return nil
	}
	return []cluster.Write{cluster.SelectNode{Target: cluster.Target{Kind: cluster.KindVolume, Name: h.name, UID: h.pod.UID}}}
}

// Remedy gives up the lock named idle, if the pod wants another one.
func (lock) Remedy(s cluster.Snapshot, p *cluster.Pod) ([]cluster.Write, string) {
	if pv, ok := cluster.Find[*v1.PersistentVolume](s, "", "idle"); ok && wanted(p) != "" && pv.Spec.ClaimRef != nil {
		return []cluster.Write{cluster.SelectNode{Target: cluster.Target{Kind: cluster.KindVolume, Name: "idle"}}}, "gave up idle"
	}
	return nil, "" // upstream's plugin has something to say then too; it would be in every story
}

func (lock) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.VolumeObject, Action: plugin.All}}}
}

// locked is the default profile with locks.
func locked() engine.Profile {
	p := engine.DefaultProfile("default-scheduler")
	p.Add(lock{}, 0)
	return p
}

// setLock is a new version of a lock, as the API server has it.
func (w *world) setLock(pv *v1.PersistentVolume) {
	w.rv++
	pv.ResourceVersion = fmt.Sprint(w.rv)
	w.locks[pv.Name] = pv
	w.watch = append(w.watch, engine.ObjectSet{Object: pv.DeepCopy()})
}

// turnLock lets the one who looks after locks make a claimed one usable, or take back one whose pod is gone.
func (w *world) turnLock() {
	for _, name := range sortedKeys(w.locks) {
		pv := w.locks[name].DeepCopy()
		switch {
		case pv.Spec.ClaimRef == nil:
			continue
		case w.pods[string(pv.Spec.ClaimRef.UID)] == nil:
			pv.Spec.ClaimRef, pv.Status.Phase = nil, v1.VolumeAvailable
		case pv.Status.Phase == v1.VolumeBound:
			continue
		default:
			pv.Status.Phase = v1.VolumeBound
		}
		w.setLock(pv)
		return
	}
}

// write lets the API server carry out the writes of one Prepare.
func (w *world) write() {
	if len(w.writes) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.writes)-1).Draw(w.t, "which writes")
	f := w.writes[i]
	w.writes = append(w.writes[:i:i], w.writes[i+1:]...)
	done := engine.WritesDone{Pod: f.Pod, Decision: f.Decision}
	for _, wr := range f.Writes {
		bind := wr.(cluster.BindVolume)
		pv := w.locks[bind.Name]
		if pv == nil || pv.ResourceVersion != bind.ResourceVersion || !w.calm && rapid.IntRange(0, 3).Draw(w.t, "refuse the write") == 0 {
			done.Message = "conflict"
			break
		}
		pv = pv.DeepCopy()
		pv.Spec.ClaimRef = claimRef(bind.Claim.Name, string(bind.Claim.UID))
		w.setLock(pv)
	}
	w.answers = append(w.answers, done)
}

// unlock carries out what a Release asks for.
func (w *world) unlock(f engine.Release) {
	for _, wr := range f.Writes {
		undo := wr.(cluster.SelectNode)
		if pv := w.locks[undo.Name]; pv != nil && pv.Spec.ClaimRef != nil && string(pv.Spec.ClaimRef.UID) == string(undo.UID) {
			pv = pv.DeepCopy()
			pv.Spec.ClaimRef, pv.Status.Phase = nil, v1.VolumeAvailable
			w.setLock(pv)
		}
	}
}

// checkLock: a pod is bound only while its lock is its own and can be used.
func (w *world) checkLock(p *v1.Pod) {
	name := p.Labels["lock"] + p.Labels["latch"]
	if name == "" || !w.oursOnly {
		return
	}
	if pv := w.locks[name]; pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != p.UID || pv.Status.Phase != v1.VolumeBound {
		w.t.Fatalf("pod %s is bound without its lock %s: %+v", p.Name, name, pv)
	}
}

// checkLocks: at rest nothing is assumed about locks, and no waiting pod holds a lock.
func (w *world) checkLocks() {
	s := w.engine.Snapshot()
	for _, name := range sortedKeys(w.locks) {
		now, _ := cluster.Find[*v1.PersistentVolume](s, "", name)
		api, _ := cluster.FindAPI[*v1.PersistentVolume](s, "", name)
		if now != api || api.ResourceVersion != w.locks[name].ResourceVersion {
			w.t.Fatalf("lock %s at rest: now %v, seen %v, true %v", name, now, api, w.locks[name])
		}
		if ref := api.Spec.ClaimRef; ref != nil {
			if p := w.pods[string(ref.UID)]; p != nil && pending(p) && !strings.Contains(fmt.Sprint(inspect(w.engine).QueueReport().Entries), p.Name) {
				w.t.Fatalf("lock %s is held for %s, which waits nowhere", name, p.Name)
			}
		}
	}
}
