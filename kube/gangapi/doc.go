// SPDX-License-Identifier: Apache-2.0

// Package gangapi owns the APIs whose objects declare gangs: the native PodGroup, and the PodGroups of
// scheduler-plugins and of Volcano. It reads a declaration from an object, and says how the status of an object must
// change. It makes no calls.
package gangapi
