-------------------------------- MODULE Check --------------------------------
(***************************************************************************)
(* The circles that TLC goes through, in two families: every mix of kinds  *)
(* of voices under the plainest settings, where only failures happen, and  *)
(* every setting for a few telling mixes, where voices also raise alarms.  *)
(***************************************************************************)
EXTENDS FireCircle

CONSTANTS MixedSize,                   \* how many voices and reserves the first family has together
          MostVoices, MostReserves,    \* how large the circles of the second are
          MostMixes, AllSettings,      \* which go through so many mixes, under all settings or ten
          MostAlarms                   \* how many evaluations of one circle are above the lowest level

(* Kinds of voices, such that each requirement can break while the others hold. The first two together *)
(* cover 360 of the 500 asked for: enough only while the chair adds 200, or the third sits with them.   *)
Kinds == <<
    [brings |-> [temporal_reasoning |-> 60, cross_layer_analysis |-> 60], lineage |-> "west"],
    [brings |-> [temporal_reasoning |-> 60, cross_layer_analysis |-> 60], lineage |-> "east"],
    [brings |-> [pattern_recognition |-> 100], lineage |-> "east"],
    [brings |-> [temporal_reasoning |-> 100], lineage |-> "west"]>>
Mixes == <<<<1, 3, 2, 4, 2, 4>>, <<3, 1, 4, 2, 1, 3>>, <<2, 4, 3, 1, 3, 2>>>>

Names == <<"a", "b", "c", "d">>
Substitutes == <<"y", "z">>

\* `mix` says of which kind each voice is, first the models, then the reserves.
Declared(voices, substitutes, mix, rounds, strict, chair, stop, alarms) ==
    LET models == SubSeq(Names, 1, voices)
        spare == SubSeq(Substitutes, 1, substitutes)
        Kind(voice) == IF voice \in Range(models) THEN Kinds[mix[CHOOSE n \in 1..voices : models[n] = voice]]
                       ELSE Kinds[mix[voices + CHOOSE n \in 1..substitutes : spare[n] = voice]]
        everybody == Range(models) \cup Range(spare)
    IN  [models |-> models, reserves |-> spare,
         brings |-> [voice \in everybody |-> Kind(voice).brings],
         lineage |-> [voice \in everybody |-> Kind(voice).lineage],
         maxRounds |-> rounds, strict |-> strict, chair |-> chair, earlyStop |-> stop,
         enforced |-> TRUE, minViable |-> IF voices > 2 /\ rounds = 2 THEN 3 ELSE 2, minCoverage |-> 500, minLineages |-> 2,
         large |-> voices >= 3, extraRound |-> TRUE, mayBeCut |-> voices = 2, mostAlarms |-> alarms]

\* A circle that does not form a quorum, without a chair, is refused before it sits.
IsAccepted(declared) ==
    LET Best(role) == Max({0} \cup {declared.brings[voice][role] :
                                       voice \in {v \in Range(declared.models) : role \in DOMAIN declared.brings[v]}})
    IN  /\ \A role \in CriticalRoles : Best(role) > PresentAbove
        /\ Cardinality({declared.lineage[voice] : voice \in Range(declared.models)}) >= declared.minLineages
        /\ Sum([role \in Roles |-> Weight[role] * Best(role)]) >= declared.minCoverage

\* Rounds, strict or not, which chair, below which spread (in hundredths) the circle stops early.
TenSettings == <<
    <<1, FALSE, "rotating", 0>>, <<2, FALSE, "rotating", 10>>, <<3, FALSE, "rotating", 0>>,
    <<3, FALSE, "rotating", 10>>, <<4, FALSE, "rotating", 0>>, <<4, FALSE, "a", 10>>, <<2, FALSE, "a", 0>>,
    <<3, FALSE, Nobody, 10>>, <<3, TRUE, "rotating", 0>>, <<4, TRUE, "rotating", 10>>>>
Settings == IF AllSettings THEN (1..4) \X BOOLEAN \X {"rotating", "a", Nobody} \X {0, 10} ELSE Range(TenSettings)

FirstFamily ==
    UNION {{Declared(sizes[1], sizes[2] - sizes[1], mix, 4, FALSE, "rotating", 0, 0) :
               mix \in [1..sizes[2] -> DOMAIN Kinds]} :
           sizes \in {pair \in (2..4) \X (2..MixedSize) : pair[1] <= pair[2] /\ pair[2] <= pair[1] + 2}}
SecondFamily == \* in the largest circles that talk to the end nobody raises an alarm, unless all settings are asked for
    {LET rounds == set[1]  strict == set[2]  chair == set[3]  stop == set[4]
         alarms == IF ~AllSettings /\ voices > 3 /\ rounds > 2 /\ stop = 0 THEN 0 ELSE MostAlarms
     IN  Declared(voices, MostReserves, Mixes[mix], rounds, strict, chair, stop, alarms) :
        voices \in 2..MostVoices, mix \in 1..MostMixes, set \in Settings}
CheckedCircles == {declared \in FirstFamily \cup SecondFamily : IsAccepted(declared)}

\* At most so many alarms in one circle: a maximum that misses one of many would miss that one alone.
Low == Min(Levels)
Alarms == Sum([voice \in Voices |-> Cardinality({number \in Rounds : said[voice][number] > Low})])
FewAnswers ==
    LET left == circle.mostAlarms - Alarms
        levels == (IF left > 0 THEN Levels ELSE {Low}) \cup {Failed} \cup (IF circle.strict THEN {Unheard} ELSE {})
    IN  {answers \in [Active -> levels] : Cardinality({voice \in Active : answers[voice] > Low}) <= left}
FewReserveAnswers ==
    LET left == circle.mostAlarms - Alarms
        levels == (IF left > 0 THEN Levels ELSE {Low}) \cup {Failed}
    IN  {two \in levels \X levels : Cardinality({n \in {1, 2} : two[n] > Low /\ (round = 1 => n = 1)}) <= left}
=============================================================================
