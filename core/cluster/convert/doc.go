// SPDX-License-Identifier: Apache-2.0

// Package convert converts API objects to the compact immutable records of package cluster, outside the scheduling
// loop. It reads a pod's requests as upstream does, leaves out the fields that no plugin reads, finds the gang that a
// pod declares, and shares one record among pods of the same template, so that the core compares specs by pointer.
//
// It owns no cluster state: an Intake remembers only the specs and marks that pods in use share.
package convert
