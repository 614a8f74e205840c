// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// State is the facts of a Store: what a new Store cannot compute from anything else. The records in it are immutable
// and shared with the Store. Objects are in no order before Sort.
type State struct {
	Revision uint64
	// Rows are the rows by index; a free one has no name. Free lists the free ones, last freed first to be reused.
	Rows []RowState
	Free []NodeIdx
	// Resources are the names beyond the fixed columns, by column.
	Resources []v1.ResourceName
	Objects   []ObjectState
	// Images are the sizes under which images were first observed: image name -> size.
	Images map[string]int64
	Mix    MixState
}

// RowState is one row.
type RowState struct {
	Name string
	Node *Node // nil while the node object is missing
	Pods []HeldPod
}

// HeldPod is a pod of the ledger.
type HeldPod struct {
	Pod     *Pod
	Gang    *GangMark // in which it counts; nil for none
	Assumed bool
	// Apart is set if the pod was in no gang when it got its node, and declares one now.
	Apart bool
}

// ObjectState is an object as the API server has it, and as it is assumed; one of them may be nil.
type ObjectState struct{ API, Assumed Object }

func (o *ObjectState) any() Object {
	if o.API != nil {
		return o.API
	}
	return o.Assumed
}

// State returns the facts of the store. Must be called outside a transaction.
func (s *Store) State() State {
	if s.inTxn {
		panic(Broken("State inside a transaction"))
	}
	st := State{
		Revision: s.rev, Rows: make([]RowState, len(s.rows)), Free: slices.Clone(s.free),
		Resources: s.names.Scalars(), Images: make(map[string]int64, len(s.images)), Mix: s.mix.state(),
	}
	pods := make([]HeldPod, 0, len(s.pods))
	for i := range s.rows {
		r, first := &s.rows[i], len(pods)
		for _, e := range r.pods {
			held := HeldPod{Pod: e.pod, Gang: e.gang, Assumed: e.assumed}
			if e.gang == noGang {
				held.Gang, held.Apart = nil, true
			}
			pods = append(pods, held)
		}
		st.Rows[i] = RowState{Name: r.name, Node: r.node}
		if len(pods) > first {
			st.Rows[i].Pods = pods[first:len(pods):len(pods)]
		}
	}
	objects := 0
	for _, t := range s.objects { // order: a sum has none
		objects += len(t.slots)
	}
	st.Objects = make([]ObjectState, 0, objects)
	for _, t := range s.objects { // order: Sort brings them in order
		for _, sl := range t.slots { // order: Sort brings them in order
			st.Objects = append(st.Objects, ObjectState{sl.api, sl.assumed})
		}
	}
	for name, img := range s.images { // order: a map is made of a map
		st.Images[name] = img.size
	}
	return st
}

// Sort brings what is in no order into one.
func (st *State) Sort() {
	slices.SortFunc(st.Objects, func(a, b ObjectState) int {
		x, y := a.any(), b.any()
		return cmp.Or(cmp.Compare(KindOf(x), KindOf(y)), compareObjectKeys(KeyOf(x), KeyOf(y)))
	})
}

// Restore gives a new store the facts of another one. It is an error if they contradict each other.
func (s *Store) Restore(st State) error {
	for _, name := range st.Resources {
		s.columnOf(name)
	}
	if err := s.restoreRows(st); err != nil {
		return err
	}
	for _, o := range st.Objects {
		obj := o.any()
		if obj == nil {
			return fmt.Errorf("restoring the cluster: an object is missing")
		}
		s.table(KindOf(obj)).set(KeyOf(obj), slot{o.API, o.Assumed})
		s.volumesObject(nil, o.API)
	}
	for name, size := range st.Images { // order: each image stands apart
		s.images[name] = &imageState{size: size}
	}
	for i := range st.Rows {
		if err := s.restoreRow(NodeIdx(i), &st.Rows[i]); err != nil {
			return err
		}
	}
	for name, img := range s.images { // order: each image stands apart
		if img.n == 0 {
			return fmt.Errorf("restoring the cluster: no node has image %q", name)
		}
	}
	s.rev = st.Revision
	s.mix.restore(st.Mix)
	return nil
}

// restoreRows makes the rows with their names.
func (s *Store) restoreRows(st State) error {
	s.rows = make([]row, len(st.Rows))
	for i := range st.Rows {
		name := st.Rows[i].Name
		if _, twice := s.index[name]; twice {
			return fmt.Errorf("restoring the cluster: two rows of the name %q", name)
		}
		if s.rows[i].name = name; name != "" {
			s.index[name] = NodeIdx(i)
		}
	}
	s.free = slices.Clone(st.Free)
	twice := map[NodeIdx]bool{}
	for _, n := range s.free {
		if int(n) >= len(s.rows) || n < 0 || s.rows[n].name != "" || twice[n] {
			return fmt.Errorf("restoring the cluster: row %d of %d is not free", n, len(s.rows))
		}
		twice[n] = true
	}
	if free := len(s.rows) - len(s.index); free != len(s.free) {
		return fmt.Errorf("restoring the cluster: %d rows have no name, and %d are free", free, len(s.free))
	}
	s.growColumns()
	return nil
}

// restoreRow puts the node and the pods of a row into it.
func (s *Store) restoreRow(n NodeIdx, st *RowState) error {
	if st.Node != nil {
		if st.Node.Name != st.Name {
			return fmt.Errorf("restoring the cluster: row %q has node %q", st.Name, st.Node.Name)
		}
		s.putNode(n, st.Node)
	}
	if len(st.Pods) > 0 && st.Name == "" {
		return fmt.Errorf("restoring the cluster: free row %d has pods", n)
	}
	for i := range st.Pods {
		held := &st.Pods[i]
		if held.Pod == nil || s.pods[held.Pod.UID] != nil {
			return fmt.Errorf("restoring the cluster: a pod on row %q is missing or occurs twice", st.Name)
		}
		e := &entry{pod: held.Pod, assumed: held.Assumed, gang: held.Gang}
		if e.gang == nil {
			e.gang = noGang // attach would read the declaration of today
		}
		s.attach(e, n, len(s.rows[n].pods))
		if held.Gang == nil && !held.Apart {
			e.gang = nil
		}
	}
	return nil
}
