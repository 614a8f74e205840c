// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"cmp"
	"slices"
)

// typicalShape is a shape of the trace with its share of the pods.
type typicalShape struct {
	OpenbShape
	share float64
}

// typicalShapes returns the most popular shapes, until they cover 95 % of the pods, with their shares of these. Memory
// does not tell shapes apart.
func (o *Openb) typicalShapes() []typicalShape {
	index := map[OpenbShape]int{} // shape -> index in list
	var list []typicalShape
	for i := range o.Pods {
		s := o.Pods[i].OpenbShape
		s.Memory = 0
		at, known := index[s]
		if !known {
			at = len(list)
			index[s] = at
			list = append(list, typicalShape{OpenbShape: s})
		}
		list[at].share++
	}
	slices.SortStableFunc(list, func(a, b typicalShape) int { return cmp.Compare(b.share, a.share) })
	covered, n := 0.0, 0
	for n < len(list) && covered < 0.95*float64(len(o.Pods)) {
		covered += list[n].share
		n++
	}
	list = list[:n]
	for i := range list {
		list[i].share /= covered
	}
	return list
}

// fragmentation returns how many thousandths of the free GPUs of a node the typical shapes cannot use, in expectation:
// all for a shape that fits no more or requests no GPU, else what is free on GPUs that are too full for it.
func fragmentation(n *openbState, typical []typicalShape) (milli float64) {
	for i := range typical {
		t := &typical[i]
		milli += float64(t.share * float64(n.unusable(&t.OpenbShape)))
	}
	return milli
}

// unusable returns the thousandths of free GPUs that a shape cannot use.
func (n *openbState) unusable(t *OpenbShape) int64 {
	var small, all int64 // free on GPUs that are too full, and on all
	enough := 0
	for _, free := range n.free[:n.gpus] {
		all += free
		if free < t.Milli {
			small += free
		} else {
			enough++
		}
	}
	if t.GPUs == 0 || n.cpu < t.CPU || enough < t.GPUs || !n.allows(t) {
		return all
	}
	return small
}
