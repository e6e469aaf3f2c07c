{{/* Stops with a sentence at what cannot be meant. */}}
{{- define "autoscaler.check" -}}
{{- if not .Values.pools -}}
{{- fail "pools is empty: write one at least; the examples beside the chart and deploy/examples/reference.yaml show how" -}}
{{- end -}}
{{- include (printf "autoscaler.check.%s" .Values.topology) . -}}
{{- range $pool, $target := .Values.keda.scaledObjects -}}
{{- $section := get $.Values.pools $pool -}}
{{- if not $section -}}
{{- fail (printf "keda.scaledObjects.%s: there is no such pool" $pool) -}}
{{- end -}}
{{- if ne $section.platform.kind "keda" -}}
{{- fail (printf "keda.scaledObjects.%s: pools.%s.platform.kind is %s; set it to keda, or remove the object" $pool $pool $section.platform.kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "autoscaler.check.standalone" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if .Values.persistence.enabled -}}
{{- fail "replicas is above 1: each program needs a history of its own; set persistence.enabled to false, or replicas to 1" -}}
{{- end -}}
{{- if and (eq .Values.mode "act") (or (include "autoscaler.hasKubernetes" .) (include "autoscaler.hasKeda" .)) -}}
{{- fail "replicas is above 1: several programs would scale the same pools; set topology to proxies, mode to recommend, or replicas to 1" -}}
{{- end -}}
{{- end -}}
{{- range $pool, $section := .Values.pools -}}
{{- if hasKey $section "demand" -}}
{{- fail (printf "pools.%s.demand: a program that is alone measures it itself; remove it, or set topology to sidecar or proxies" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "autoscaler.check.proxies" -}}
{{- include "autoscaler.check.controllers" . -}}
{{- end -}}

{{- define "autoscaler.check.sidecar" -}}
{{- include "autoscaler.check.controllers" . -}}
{{- range $pool, $section := .Values.pools -}}
{{- if not (hasKey $.Values.sidecars.servers $pool) -}}
{{- fail (printf "sidecars.servers.%s: missing; name the labels and the container of its model servers: {selector: {app: chat}, container: server}" $pool) -}}
{{- end -}}
{{- end -}}
{{- range $pool, $server := .Values.sidecars.servers -}}
{{- if not (hasKey $.Values.pools $pool) -}}
{{- fail (printf "sidecars.servers.%s: there is no such pool" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Controllers, and who measures for them. */}}
{{- define "autoscaler.check.controllers" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail (printf "replicas is above 1, and topology is %s: set controllers.replicas or proxies.replicas" .Values.topology) -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail (printf "persistence.existingClaim is set, and topology is %s: each controller has a history of its own; remove it" .Values.topology) -}}
{{- end -}}
{{- range $pool, $section := .Values.pools -}}
{{- if $section.signals -}}
{{- fail (printf "pools.%s.signals: only a program that is alone reads them; remove them, or set topology to standalone" $pool) -}}
{{- end -}}
{{- if $section.substitute -}}
{{- fail (printf "pools.%s.substitute: only a program that is alone has queues of several pools; remove it, or set topology to standalone" $pool) -}}
{{- end -}}
{{- end -}}
{{- end -}}
