// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// objectKey names an object among those of its kind; namespace is empty for kinds without namespaces.
type objectKey struct{ namespace, name string }

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// rank is the place of a kind among the initial lists. Pods come last, and nodes before them: a pod is told when all
// that it can refer to is known.
type rank uint8

const (
	nodeRank rank = 254
	podRank  rank = 255
)

// row is one object: what the API server said last and what the engine was told last.
type row[R comparable] struct {
	newest R // zero: gone
	told   R // zero: the engine does not know it
	queued bool
}

// rows are the objects of one kind. R is a pointer or an interface; Inbox.mu guards them.
type rows[R comparable] struct {
	rank rank
	kind cluster.Kind // empty for pods and nodes
	// gangs is the API that a kind of several APIs comes from; zero for other kinds.
	gangs gangAPI
	rows  map[objectKey]row[R] // namespace and name -> versions
	same  func(a, b R) bool    // whether the engine would learn nothing from b; neither is zero
	keep  func(rec R)          // called before a record is kept; may be nil
	// onList is called under the lock with each full list; may be nil.
	onList func()
	// whole are the full objects, kept only when foreign code is to see them or they may be written; nil otherwise. An object
	// that is gone stays until the engine has been told.
	whole map[objectKey]metav1.Object // namespace and name -> newest
	// wanted tells which of them to keep; nil for all.
	wanted func(metav1.Object) bool
	// versions are the newest resource versions, also of objects from which the engine learned nothing; nil for kinds that
	// are not audited.
	versions map[objectKey]string // namespace and name -> resource version
	// listed becomes true with the first full list. Until it is so for all kinds, nothing is taken.
	listed bool
}

func newRows[R comparable](rank rank, same func(a, b R) bool) *rows[R] {
	return &rows[R]{rank: rank, rows: map[objectKey]row[R]{}, same: same}
}

// set takes the newest version of an object.
func (t *rows[R]) set(in *Inbox, k *keyed[R]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	t.setLocked(in, k)
}

func (t *rows[R]) setLocked(in *Inbox, k *keyed[R]) {
	var none R
	key, rec := k.key, k.rec
	r := t.rows[key]
	switch {
	case k.whole != nil:
		t.whole[key] = k.whole
	case t.whole != nil:
		delete(t.whole, key)
	}
	if t.versions != nil {
		t.versions[key] = k.version
	}
	if r.newest != none && t.same(r.newest, rec) {
		return
	}
	if t.keep != nil {
		t.keep(rec)
	}
	r.newest = rec
	t.enqueue(in, key, r)
}

// gone takes the end of an object.
func (t *rows[R]) gone(in *Inbox, key objectKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	t.goneLocked(in, key)
}

func (t *rows[R]) goneLocked(in *Inbox, key objectKey) {
	var none R
	r := t.rows[key]
	if r.newest == none {
		return
	}
	r.newest = none
	delete(t.versions, key)
	t.enqueue(in, key, r)
}

// enqueue keeps a row and puts it at the end of the queue once.
func (t *rows[R]) enqueue(in *Inbox, key objectKey, r row[R]) {
	if !r.queued {
		r.queued = true
		in.queue = append(in.queue, waiting{t.rank, key})
	}
	t.rows[key] = r
	in.signal()
}

// keyed is an object of a list; a zero record means that it was listed without a new version.
type keyed[R comparable] struct {
	key     objectKey
	version string
	rec     R
	whole   metav1.Object // the full object, where that is kept
}

// replace makes the objects exactly these, a list that came at the given time: what is missing is gone.
func (t *rows[R]) replace(in *Inbox, list []*keyed[R], came time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(t.rows) == 0 {
		t.rows = make(map[objectKey]row[R], len(list))
		in.queue = slices.Grow(in.queue, len(list))
	} else {
		t.dropMissing(in, list)
	}
	if in.opened { // before, all lists are sorted together
		slices.SortFunc(list, func(a, b *keyed[R]) int { return compareKeys(a.key, b.key) })
	}
	var none R
	for _, l := range list {
		if l.rec != none {
			t.setLocked(in, l)
		}
	}
	t.listed = true
	if t.onList != nil {
		t.onList()
	}
	in.listedLocked(came)
}

// dropMissing takes what is not in a list as gone.
func (t *rows[R]) dropMissing(in *Inbox, list []*keyed[R]) {
	listed := make(map[objectKey]bool, len(list)) // key -> it was listed
	for _, l := range list {
		listed[l.key] = true
	}
	var none R
	var missing []objectKey
	for key, r := range t.rows { // order: sorted below
		if r.newest != none && !listed[key] {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, compareKeys)
	for _, key := range missing {
		t.goneLocked(in, key)
	}
}

// tell takes a row out of the queue: what the engine knew, and what it knows from now on.
func (t *rows[R]) tell(key objectKey) (was, is R) {
	var none R
	r := t.rows[key]
	if r.newest == none {
		delete(t.rows, key)
		delete(t.whole, key)
	} else {
		t.rows[key] = row[R]{newest: r.newest, told: r.newest}
	}
	return r.told, r.newest
}
