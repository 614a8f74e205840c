// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/record"
)

// row is one object: the newest version of the API server and the one that the engine knows.
type row[R comparable] struct {
	newest R // zero: gone
	known  R // zero: the engine does not know it
	queued bool
	// received is when the oldest change came that the engine does not know; 0 where that is not noted.
	received record.Time
}

// rows are the objects of one kind. R is a pointer or an interface; backlog.mu guards them.
type rows[R comparable] struct {
	rank rank
	kind cluster.Kind // empty for pods and nodes
	// gangs is the API that a kind of several APIs comes from; zero for other kinds.
	gangs gangapi.API
	// version is the one of gangs.Versions in which the objects are read.
	version string
	rows    map[objectKey]row[R] // namespace and name -> versions
	same    func(a, b R) bool    // whether the engine would learn nothing from b; neither is zero
	keep    func(rec R)          // called before a record is kept; may be nil
	// onList is called under the lock after each full list, with the time at which it came.
	onList func(came time.Time)
	// whole are the full objects, kept only when foreign code is to see them or they may be written; nil otherwise. An
	// object that is gone stays until the engine knows that.
	whole map[objectKey]metav1.Object // namespace and name -> newest
	// wanted tells which of them to keep; nil for all.
	wanted func(metav1.Object) bool
	// versions are the newest resource versions, also of objects from which the engine learned nothing; nil for kinds
	// that are not audited.
	versions map[objectKey]string // namespace and name -> resource version
	// renews reports whether a version is so different from the one before that it counts as received anew while both
	// wait; nil where it is not noted when versions come.
	renews func(before, is R) bool
	// listed becomes true with the first full list. Until it is so for all kinds, nothing is taken.
	listed bool
}

func newRows[R comparable](rank rank, same func(a, b R) bool, onList func(came time.Time)) *rows[R] {
	return &rows[R]{rank: rank, rows: map[objectKey]row[R]{}, same: same, onList: onList}
}

// set takes the newest version of an object.
func (t *rows[R]) set(b *backlog, k *keyed[R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.setLocked(b, k)
}

func (t *rows[R]) setLocked(b *backlog, k *keyed[R]) {
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
	if t.renews != nil && (!r.queued || r.newest == none || t.renews(r.newest, rec)) {
		r.received = b.clock.Now()
	}
	r.newest = rec
	t.enqueue(b, key, r)
}

// gone takes the end of an object.
func (t *rows[R]) gone(b *backlog, key objectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.goneLocked(b, key)
}

func (t *rows[R]) goneLocked(b *backlog, key objectKey) {
	var none R
	r := t.rows[key]
	if r.newest == none {
		return
	}
	r.newest = none
	if t.renews != nil {
		r.received = b.clock.Now()
	}
	delete(t.versions, key)
	t.enqueue(b, key, r)
}

// enqueue keeps a row and puts it at the end of the queue once.
func (t *rows[R]) enqueue(b *backlog, key objectKey, r row[R]) {
	if !r.queued {
		r.queued = true
		b.queue = append(b.queue, waiting{t.rank, key})
	}
	t.rows[key] = r
	b.signal()
}

// keyed is an object of a list; a zero record means that it was listed without a new version.
type keyed[R comparable] struct {
	key     objectKey
	version string
	rec     R
	whole   metav1.Object // the full object, where that is kept
}

// replace makes the objects exactly these, a list that came at the given time: what is missing is gone.
func (t *rows[R]) replace(b *backlog, list []*keyed[R], came time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(t.rows) == 0 {
		t.rows = make(map[objectKey]row[R], len(list))
		b.queue = slices.Grow(b.queue, len(list))
	} else {
		t.dropMissing(b, list)
	}
	if b.opened { // before, all lists are sorted together
		slices.SortFunc(list, func(a, b *keyed[R]) int { return compareKeys(a.key, b.key) })
	}
	var none R
	for _, l := range list {
		if l.rec != none {
			t.setLocked(b, l)
		}
	}
	t.listed = true
	t.onList(came)
}

// dropMissing takes what is not in a list as gone.
func (t *rows[R]) dropMissing(b *backlog, list []*keyed[R]) {
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
		t.goneLocked(b, key)
	}
}

// tell takes a row out of the queue: what the engine knew, what it knows from now on, and when that was received.
func (t *rows[R]) tell(key objectKey) (was, is R, received record.Time) {
	var none R
	r := t.rows[key]
	if r.newest == none {
		delete(t.rows, key)
		delete(t.whole, key)
	} else {
		t.rows[key] = row[R]{newest: r.newest, known: r.newest}
	}
	return r.known, r.newest, r.received
}
