// SPDX-License-Identifier: Apache-2.0

// Package podaffinity owns InterPodAffinity: pods are attracted or repelled by other pods in a topology.
package podaffinity
