// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// ordered is what a StatefulSet has beside other units.
type ordered struct {
	pod       *v1.Pod           // of which templates are made
	pods      []*Pod            // ordinal -> its pod, nil for none
	templates map[int]*Template // ordinal -> template of its pods, if the set has claims
}

// drop forgets a pod that is gone.
func (o *ordered) drop(p *Pod) {
	if i := slices.Index(o.pods, p); i >= 0 {
		o.pods[i] = nil
	}
}

// fillOrdered creates the pods that a StatefulSet lacks, or deletes those that it has too many. It does one pod at a
// time, and the next one when all before run or are gone, unless the set is parallel.
func (u *Unit) fillOrdered() {
	parallel, o := u.Workload.Parallel, u.ordered
	for len(o.pods) < u.size {
		o.pods = append(o.pods, nil)
	}
	for i := range u.size {
		if o.pods[i] == nil {
			u.createOrdinal(i)
		}
		if p := o.pods[i]; !parallel && (p.Started < 0 || p.Record.Terminating) {
			return
		}
	}
	for i := len(o.pods) - 1; i >= u.size; i-- {
		p := o.pods[i]
		if p == nil {
			continue
		}
		u.w.Delete(p, Deleted)
		if !parallel {
			return
		}
	}
}

// createOrdinal creates the pod of a number, and the claims of it that do not exist. Claims outlive their pods.
func (u *Unit) createOrdinal(i int) {
	l, w, o := u.Workload, u.w, u.ordered
	name := fmt.Sprintf("%s-%d", u.Name, i)
	template := u.template
	if len(l.Claims) > 0 {
		if template = o.templates[i]; template == nil {
			template = w.Template(mounting(o.pod, l.Claims, name))
			o.templates[i] = template
		}
	}
	for _, t := range l.Claims {
		if c := claimFor(t, o.pod.Namespace, name); w.storage.claims[cluster.KeyOf(c)] == nil {
			w.AddClaim(c)
		}
	}
	n := NewPod{Name: name, UID: cluster.UID(fmt.Sprintf("%s-of-%d", name, u.made)), Owner: u}
	n.Work, n.Fails = u.fate()
	u.made++
	p := w.Create(template, n)
	u.live, o.pods[i] = append(u.live, p), p
}
