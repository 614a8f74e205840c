// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// volumeCatalog lists the volumes of each class by size, so that a claim need not sort them. It follows the journal of
// volumes: what it costs to bring up to date is what has changed.
type volumeCatalog struct {
	of    cluster.Snapshot // the store it is about
	next  uint64           // sequence number of the first change that is not in it
	known map[string]catalogued
	// classes are sorted by size, then name.
	classes map[string][]catalogued // storage class -> its volumes
}

// catalogued is one volume; its class and size are those it is filed under.
type catalogued struct {
	pv    *v1.PersistentVolume
	class string
	size  apiresource.Quantity
	rules *nodematch.Selector // its affinity
}

func compareCatalogued(a, b catalogued) int {
	return cmp.Or(a.size.Cmp(b.size), strings.Compare(a.pv.Name, b.pv.Name))
}

// ofClass lists the volumes of a class, smallest first. The list is good until the next call.
func (pl *VolumeBinding) ofClass(s cluster.Snapshot, class string) []catalogued {
	c := &pl.catalog
	changed, next, ok := s.KindChanges(cluster.KindVolume, c.next)
	if c.of != s || !ok || c.known == nil {
		*c = volumeCatalog{of: s, known: map[string]catalogued{}, classes: map[string][]catalogued{}}
		cluster.Each(s, func(pv *v1.PersistentVolume) bool {
			v := pl.catalogue(pv)
			c.known[pv.Name] = v
			c.classes[v.class] = append(c.classes[v.class], v)
			return true
		})
		for _, volumes := range c.classes { // order: each is sorted alone
			slices.SortFunc(volumes, compareCatalogued)
		}
	} else {
		for _, key := range changed {
			pl.refile(s, key.Name)
		}
	}
	c.next = next
	return c.classes[class]
}

// refile files a volume as it is now.
func (pl *VolumeBinding) refile(s cluster.Snapshot, name string) {
	c := &pl.catalog
	if old, ok := c.known[name]; ok {
		delete(c.known, name)
		if i, found := slices.BinarySearchFunc(c.classes[old.class], old, compareCatalogued); found {
			c.classes[old.class] = slices.Delete(c.classes[old.class], i, i+1)
		}
		if len(c.classes[old.class]) == 0 {
			delete(c.classes, old.class)
		}
	}
	if pv, ok := cluster.Find[*v1.PersistentVolume](s, "", name); ok {
		v := pl.catalogue(pv)
		c.known[name] = v
		i, _ := slices.BinarySearchFunc(c.classes[v.class], v, compareCatalogued)
		c.classes[v.class] = slices.Insert(c.classes[v.class], i, v)
	}
}

func (pl *VolumeBinding) catalogue(pv *v1.PersistentVolume) catalogued {
	return catalogued{pv, volumeClass(pv), pv.Spec.Capacity[v1.ResourceStorage],
		&pl.affinity(pv.Spec.NodeAffinity).rules}
}
