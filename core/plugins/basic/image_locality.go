// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"math/bits"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// ImageLocality prefers nodes that already hold large images of the pod (upstream: plugins/imagelocality). An image
// counts by its size times the share of nodes that hold it, so that one node with the image does not draw all pods.
type ImageLocality struct{}

// ImageLocalityName is its name in configurations.
const ImageLocalityName = "ImageLocality"

// The sum of a pod's images, in bytes, between which the score grows from 0 to MaxScore; the upper one is per
// container, init container and image volume.
const (
	imageFloor   int64 = 23 << 20
	imageCeiling int64 = 1000 << 20
)

// Name is ImageLocalityName.
func (ImageLocality) Name() string { return ImageLocalityName }

// Reads declares the images of the node, and which nodes have the same ones.
func (ImageLocality) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsRows | plugin.ReadsVersioned
}

// PrepareScore scores every pod.
func (ImageLocality) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	return &imageScore{images: p.Spec.Images}
}

// Normal leaves the scores alone.
func (ImageLocality) Normal() plugin.Normal { return plugin.AsIs }

type imageScore struct {
	images []string
}

// imageWorth is what an image counts on a node that has it.
func imageWorth(size int64, holders, nodes int) int64 {
	spread := float64(holders) / float64(nodes)
	return int64(float64(size) * spread)
}

func (f *imageScore) of(sum int64) int64 {
	floor, ceiling := imageFloor, imageCeiling*int64(len(f.images))
	if sum < floor {
		sum = floor
	} else if sum > ceiling {
		sum = ceiling
	}
	return plugin.MaxScore * (sum - floor) / (ceiling - floor)
}

func (f *imageScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	var sum int64
	for _, name := range f.images {
		if !v.HasImage(name) {
			continue
		}
		if size, holders, _, ok := s.Image(name); ok {
			sum += imageWorth(size, holders, s.Nodes())
		}
	}
	return f.of(sum)
}

func (f *imageScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	out = out[lo:hi]
	clear(out)
	held := false
	for _, name := range f.images {
		size, holders, on, ok := s.Image(name)
		if !ok {
			continue
		}
		held = true
		worth := imageWorth(size, holders, s.Nodes())
		eachBit(on, lo, hi, func(n cluster.NodeIdx) { out[n-lo] += worth })
	}
	if !held {
		fill(out, f.of(0))
		return
	}
	for i, sum := range out {
		out[i] = f.of(sum)
	}
}

// eachBit calls f for the members of b from lo to hi-1.
func eachBit(b cluster.Bitmap, lo, hi cluster.NodeIdx, f func(n cluster.NodeIdx)) {
	for w := int(lo) / 64; w < len(b) && w*64 < int(hi); w++ {
		for word := b[w] & nodematch.RangeMask(w, lo, hi); word != 0; word &= word - 1 {
			f(cluster.NodeIdx(w*64 + bits.TrailingZeros64(word)))
		}
	}
}

func fill(out []int64, v int64) {
	for i := range out {
		out[i] = v
	}
}

// Version changes with the set of nodes and what images they hold, once some node holds one of the pod's: the share of
// nodes enters every score.
func (f *imageScore) Version(s cluster.Snapshot) uint64 {
	for _, name := range f.images {
		if _, _, _, ok := s.Image(name); ok {
			return 1 + s.NodeSet()
		}
	}
	return 0
}
