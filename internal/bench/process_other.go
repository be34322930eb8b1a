//go:build !linux

package bench

import "time"

// This system does not report the resources of other processes, nor the owner of a port.

func ProcessCPU(int) time.Duration { return 0 }

func ProcessWritten(int) int64 { return -1 }

func residentBytes(int) (now, most int64) { return 0, 0 }

func machineLoad() float64 { return -1 }

func machineNames() (cpu, system string) { return "", "" }

func ListenerPID(string) int { return 0 }
