// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package kube

import "syscall"

// dumpSignal asks for a dump (upstream: pkg/scheduler/backend/cache/debugger).
const dumpSignal = syscall.SIGUSR2
