-------------------------------- MODULE Trace --------------------------------
(***************************************************************************)
(* Is what the engine did a behaviour of FireCircle? Recorded.tla, written *)
(* by formal/recording.py, lists circles that were really held: their          *)
(* declaration and their steps. Only what the voices said is taken from    *)
(* there; everything that the circle decided must follow from Next.        *)
(***************************************************************************)
EXTENDS FireCircle, Recorded, TLC

VARIABLES which,  \* which recording this is
          steps   \* what is left of it

Step == Head(steps)

RecordedAnswers == IF Step.kind = "hear" THEN {Step.answers} ELSE {}
RecordedReserveAnswers == IF Step.kind = "seat" THEN {Step.answers} ELSE {}
Figures == 0..100

TraceInit ==
    /\ which \in DOMAIN Recordings
    /\ circle = Recordings[which].circle
    /\ steps = Recordings[which].steps
    /\ Begins

Asked == stage = "hear" /\ round = Step.round /\ chairs[round] = Step.chair /\ ActiveInOrder = Step.asked
Called == stage = "weigh" /\ ~MayGoOn(Active) /\ HelpfulGroups # {} /\ reserves[FirstOf(HelpfulGroups)] = Step.voice
Weighed == /\ stage = "weigh"
           /\ Step.valid = FormsQuorum(Active, ChairIsOccupied)
           /\ Step.coverage = Coverage(Active, ChairIsOccupied)
Ended == \* of a circle that is cut short within a round only its last full round is followed
    /\ outcome' = Step.outcome /\ consensus' = Step.consensus
    /\ Step.outcome # "cut_short" =>
           /\ ActiveInOrder' = Step.active
           /\ {voice \in Voices : lost'[voice] > 0 /\ \E number \in Rounds : said'[voice][number] # Silent} = Step.zombies

TraceNext ==
    /\ steps # <<>>
    /\ CASE Step.kind = "hear" -> Asked /\ Hear
         [] Step.kind = "seat" -> Called /\ Weigh
         [] Step.kind = "open" -> Weighed /\ Weigh /\ round' = round + 1
         [] Step.kind = "end"  -> (Weigh \/ CutShort \/ Rest) /\ stage' = "ended" /\ Ended
    /\ steps' = Tail(steps) /\ which' = which

\* Tells how far each recording could be followed.
Followed == PrintT(<<"left", which, Len(steps)>>)
=============================================================================
